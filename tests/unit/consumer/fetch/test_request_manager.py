"""When which fetch is sent, and what is made of the answers."""

import pytest

from pyclient.consumer.fetch.buffer import FetchBuffer
from pyclient.consumer.fetch.request_manager import FetchOptions, FetchRequestManager
from pyclient.consumer.health.fetch_watch import FetchWatch
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import (
    KafkaConnectionError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    TopicAuthorizationError,
    UnknownServerError,
    UnsupportedVersionError,
)
from pyclient.net.request_manager import aside_connection
from pyclient.protocol.messages.current_leader import LeaderIdAndEpoch, NodeEndpoint
from pyclient.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from pyclient.types import TopicPartition
from tests.support.consumer_parts import (
    BACKOFF_MS,
    FakeCluster,
    batch_at,
    new_backoff,
    new_inbox,
    new_metrics,
    started,
    topic_id,
)

P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))


class World:
    """A manager over topic orders: partitions 0 and 1 led by node 1, partition 2 by node 2."""

    def __init__(self, positions, *, limit_bytes=10_000, **options):
        self.subscription = started(SubscriptionState(OffsetReset.EARLIEST), positions)
        self.cluster = FakeCluster()
        self.cluster.describe({"orders": [1, 1, 2]}, epoch=7)
        self.buffer = FetchBuffer(limit_bytes, lambda: None)
        self.inbox = new_inbox()
        self.manager = FetchRequestManager(
            FetchOptions(**options),
            self.subscription,
            self.buffer,
            self.cluster,
            new_backoff(),
            self.inbox,
            new_metrics(),
            FetchWatch(),
        )
        self.now_ms = 0.0
        self.in_flight = {}

    def poll(self):
        """What is sent now: {connection: {partition number: offset}}."""
        sent = {}
        for unsent in self.manager.poll(self.now_ms).requests:
            assert unsent.node not in self.in_flight
            self.in_flight[unsent.node] = unsent
            sent[unsent.node] = {
                one.partition: one.fetch_offset
                for topic in unsent.request.topics
                for one in topic.partitions
            }
        return sent

    def answer(self, connection, outcome):
        self.in_flight.pop(connection).on_done(outcome, self.now_ms)

    def buffered(self):
        found = []
        while (fetch := self.buffer.first()) is not None:
            self.buffer.remove(fetch)
            found.append(fetch)
        return found


def response(*partitions, session_id=5, endpoints=()):
    return FetchResponse(
        session_id=session_id,
        responses=[
            FetchableTopicResponse(topic_id=topic_id("orders"), partitions=list(partitions))
        ],
        node_endpoints=list(endpoints),
    )


def data(number, records=b"", *, error=0, **options):
    return PartitionData(
        partition_index=number,
        error_code=error,
        high_watermark=100,
        records=memoryview(records),
        **options,
    )


def test_one_request_per_leader_has_all_its_partitions():
    world = World({P0: 5, P1: 6, P2: 7})
    assert world.poll() == {1: {0: 5, 1: 6}, 2: {2: 7}}
    assert world.poll() == {}


def test_a_request_says_what_the_configuration_says():
    world = World(
        {P0: 5}, max_wait_ms=50, min_bytes=10, max_bytes=1000, max_partition_bytes=100,
        isolation_level=1, use_sessions=False,
    )  # fmt: skip
    world.poll()
    request = world.in_flight[1].request
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (50, 10, 1000)
    assert (request.isolation_level, request.session_epoch) == (1, -1)
    (topic,) = request.topics
    assert topic.topic_id == topic_id("orders")
    (partition,) = topic.partitions
    assert (partition.partition_max_bytes, partition.current_leader_epoch) == (100, 7)


def test_the_next_fetch_does_not_wait_for_the_program_to_read():
    world = World({P0: 0, P1: 0})
    world.poll()
    world.answer(1, response(data(0, batch_at(0, [b"a", b"b"])), data(1)))
    assert world.poll() == {1: {0: 2}}  # partition 1 is as before, so the session has it
    assert world.subscription.position(P0) == 0
    assert world.in_flight[1].request.session_id == 5


def test_a_full_buffer_stops_the_fetches_and_a_read_one_starts_them():
    batch = batch_at(0, [b"x" * 100])
    world = World({P0: 0}, limit_bytes=len(batch))
    world.poll()
    world.answer(1, response(data(0, batch)))
    assert world.poll() == {}
    world.buffered()
    assert world.poll() == {1: {0: 1}}


def test_nothing_is_fetched_for_a_paused_partition_and_its_bytes_count():
    batch = batch_at(0, [b"x" * 100])
    world = World({P0: 0, P1: 0}, limit_bytes=len(batch))
    world.poll()
    world.answer(1, response(data(0, batch), data(1)))
    world.subscription.pause([P0])
    assert world.poll() == {}  # full
    world.buffered()
    world.poll()
    assert list(world.in_flight[1].request.topics) == []  # partition 1 goes on in the session
    (gone,) = world.in_flight[1].request.forgotten_topics_data
    assert gone.partitions == [0]


def test_what_came_for_an_earlier_epoch_is_dropped():
    world = World({P0: 0})
    world.poll()
    world.subscription.seek(P0, 50)
    world.answer(1, response(data(0, batch_at(0, [b"a"]))))
    assert world.buffered() == []
    assert world.poll() == {1: {0: 50}}


ASIDE = aside_connection(1)


def test_a_sought_partition_does_not_wait_behind_a_fetch_that_waits_for_data():
    world = World({P0: 0, P1: 0})
    world.poll()
    world.subscription.seek(P0, 50)
    assert world.poll() == {ASIDE: {0: 50}}
    assert world.in_flight[ASIDE].request.max_wait_ms == 20
    assert world.in_flight[ASIDE].request.session_epoch == -1
    world.answer(ASIDE, response(data(0, batch_at(50, [b"a"])), session_id=0))
    assert [fetch.fetch_offset for fetch in world.buffered()] == [50]
    assert world.poll() == {ASIDE: {0: 51}}


def test_a_partition_without_records_is_not_hidden_by_a_fetch_that_waits():
    """Asked aside once and found empty, it was left out until the node's fetch came back."""
    world = World({P0: 0, P1: 0})
    world.poll()
    world.subscription.seek(P0, 50)
    for now_ms in (0, 20, 40):
        world.now_ms = now_ms
        assert world.poll() == {ASIDE: {0: 50}}
        world.answer(ASIDE, response(data(0), session_id=0))
    world.answer(1, response(data(0), data(1)))
    assert world.poll() == {1: {0: 50}}


def test_the_next_fetch_takes_in_what_is_aside_when_nothing_flows():
    world = World({P0: 0, P1: 0})
    world.poll()
    world.subscription.seek(P0, 50)
    world.poll()
    world.answer(1, response(data(0), data(1)))
    assert world.poll() == {}  # the one aside is about to end
    world.answer(ASIDE, response(data(0), session_id=0))
    assert world.poll() == {1: {0: 50}}
    assert world.in_flight[1].request.max_wait_ms == 500


def test_a_fetch_with_data_does_not_wait_for_the_one_aside():
    world = World({P0: 0, P1: 0})
    world.poll()
    world.subscription.seek(P0, 50)
    world.poll()
    world.answer(1, response(data(0), data(1, batch_at(0, [b"a"]))))
    assert world.poll() == {1: {1: 1}}
    world.answer(ASIDE, response(data(0), session_id=0))
    assert world.poll() == {ASIDE: {0: 50}}


def test_a_fetch_aside_that_does_not_end_is_not_waited_for():
    world = World({P0: 0, P1: 0})
    world.poll()
    world.subscription.seek(P0, 50)
    world.poll()
    world.answer(1, response(data(0), data(1)))
    assert world.poll() == {}
    world.now_ms = 40
    assert world.poll() == {1: {}}  # partition 1 is in the session


def test_a_partition_without_a_leader_asks_for_metadata():
    world = World({P0: 0})
    world.cluster.describe({"orders": [-1]})
    assert world.poll() == {}
    assert world.cluster.update_requests == 1
    world.cluster.describe({"orders": [2]})
    assert world.poll() == {2: {0: 0}}


def test_a_partition_is_not_asked_of_a_new_leader_while_the_old_one_may_answer():
    world = World({P0: 0})
    world.poll()
    world.cluster.describe({"orders": [2, 1, 2]})
    assert world.poll() == {}
    world.answer(1, KafkaConnectionError())
    assert world.poll() == {2: {0: 0}}


def test_a_broken_connection_is_tried_again_after_a_pause_in_a_new_session():
    world = World({P0: 0})
    world.poll()
    world.answer(1, response(data(0)))
    world.poll()
    world.answer(1, KafkaConnectionError("gone"))
    assert world.cluster.update_requests == 1
    assert world.poll() == {}
    assert world.manager.poll(world.now_ms).next_poll_ms == BACKOFF_MS
    world.now_ms += BACKOFF_MS
    assert world.poll() == {1: {0: 0}}
    request = world.in_flight[1].request
    assert (request.session_id, request.session_epoch) == (5, 0)


def test_a_former_leader_causes_a_pause_and_new_metadata():
    world = World({P0: 0})
    world.poll()
    world.answer(1, response(data(0, error=NotLeaderOrFollowerError.code)))
    assert world.cluster.update_requests == 1
    assert world.poll() == {}
    world.now_ms += BACKOFF_MS
    assert world.poll() == {1: {}}  # the session has the partition


def test_a_former_leader_may_say_who_leads_now():
    world = World({P0: 0})
    world.poll()
    new_leader = LeaderIdAndEpoch(leader_id=3, leader_epoch=8)
    failed = data(0, error=NotLeaderOrFollowerError.code, current_leader=new_leader)
    endpoint = NodeEndpoint(node_id=3, host="broker3", port=9092)
    world.answer(1, response(failed, endpoints=[endpoint]))
    world.now_ms += BACKOFF_MS
    assert world.poll() == {3: {0: 0}}


@pytest.mark.parametrize("error", [OffsetOutOfRangeError, TopicAuthorizationError])
def test_what_the_program_has_to_know_stops_the_partition_and_goes_to_the_buffer(error):
    world = World({P0: 0, P1: 0})
    world.poll()
    world.answer(1, response(data(0, error=error.code), data(1)))
    (fetch,) = world.buffered()
    assert isinstance(fetch.error, error)
    assert "orders-0 at offset 0" in str(fetch.error)
    assert [target.partition for target in world.subscription.fetchable()] == [P1]


def test_an_error_of_an_earlier_epoch_is_dropped():
    world = World({P0: 0})
    world.poll()
    world.subscription.seek(P0, 50)
    world.answer(1, response(data(0, error=OffsetOutOfRangeError.code)))
    assert world.buffered() == []


def test_an_unknown_error_is_logged_and_tried_again(caplog):
    world = World({P0: 0})
    world.poll()
    world.answer(1, response(data(0, error=UnknownServerError.code)))
    assert "orders-0 at offset 0" in caplog.text
    world.now_ms += BACKOFF_MS
    assert world.poll() == {1: {}}  # the session has the partition


def test_bytes_without_a_whole_batch_are_not_asked_for_again():
    world = World({P0: 0})
    world.poll()
    world.answer(1, response(data(0, batch_at(0, [b"a"])[:-1])))
    assert world.poll() == {}
    assert len(world.buffered()) == 1
    world.subscription.seek(P0, 9)
    assert world.poll() == {1: {0: 9}}


def test_a_broker_that_cannot_be_fetched_from_is_an_error_for_the_program():
    world = World({P0: 0})
    world.poll()
    world.answer(1, UnsupportedVersionError("too old"))
    world.now_ms += 10 * BACKOFF_MS
    assert world.poll() == {}
    with pytest.raises(UnsupportedVersionError):
        world.inbox.run()
    assert world.poll() == {1: {0: 0}}


def test_the_ends_of_partitions_are_noted():
    world = World({P0: 0})
    world.poll()
    world.answer(1, response(data(0, last_stable_offset=90, log_start_offset=3)))
    assert world.subscription.offsets(P0) == (100, 90, 3)
