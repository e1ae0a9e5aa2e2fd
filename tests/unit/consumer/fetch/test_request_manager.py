"""When fetches are sent, and how responses are handled."""

import pytest

from pyclient.consumer.fetch.buffer import FetchBuffer
from pyclient.consumer.fetch.request_manager import FetchOptions, FetchRequestManager
from pyclient.consumer.health.fetch_watch import FetchWatch
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import (
    FencedLeaderEpochError,
    KafkaConnectionError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    TopicAuthorizationError,
    UnknownLeaderEpochError,
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
    """A bug once: the seeked partition, found empty, waited for the fetch that was in flight."""
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


class RackWorld(World):
    """P0's leader is node 1; node 2 has a replica in the consumer's rack."""

    def __init__(self):
        super().__init__({P0: 5}, rack_id="a", read_replica_ms=1_000)

    def prefer(self):
        """The leader names node 2, without records."""
        assert self.poll() == {1: {0: 5}}
        assert self.in_flight[1].request.rack_id == "a"
        self.answer(1, response(data(0, preferred_read_replica=2)))

    def answer_follower(self, **options):
        self.answer(2, response(data(0, **options)))

    def next_fetch(self):
        """Where the next fetch goes; an incremental one names no partition."""
        (connection,) = self.poll()
        return connection


def test_a_preferred_replica_is_read_until_its_lifetime_is_over():
    world = RackWorld()
    world.prefer()
    assert world.poll() == {2: {0: 5}}
    world.answer_follower()
    assert world.next_fetch() == 2
    world.now_ms = 1_000
    world.answer_follower()
    assert world.next_fetch() == 1
    world.answer(1, response(data(0, preferred_read_replica=2)))
    assert world.next_fetch() == 2


def test_a_replica_that_names_itself_again_does_not_live_longer():
    world = RackWorld()
    world.prefer()
    assert world.next_fetch() == 2
    world.now_ms = 900
    world.answer_follower(preferred_read_replica=2)
    assert world.next_fetch() == 2
    world.now_ms = 1_000
    world.answer_follower()
    assert world.next_fetch() == 1


@pytest.mark.parametrize(
    "error", [OffsetOutOfRangeError, NotLeaderOrFollowerError, FencedLeaderEpochError]
)
def test_an_error_of_the_replica_sends_the_fetch_to_the_leader(error):
    world = RackWorld()
    world.prefer()
    assert world.next_fetch() == 2
    world.answer_follower(error=error.code)
    assert world.buffered() == []  # no reset either: the leader may have the offset
    world.now_ms += 2 * BACKOFF_MS
    assert world.next_fetch() == 1
    if error is OffsetOutOfRangeError:
        world.answer(1, response(data(0, error=error.code)))
        (fetch,) = world.buffered()
        assert isinstance(fetch.error, OffsetOutOfRangeError)


def test_a_replica_that_does_not_know_the_epoch_yet_is_asked_again():
    world = RackWorld()
    world.prefer()
    assert world.next_fetch() == 2
    world.answer_follower(error=UnknownLeaderEpochError.code)
    world.now_ms += 2 * BACKOFF_MS
    assert world.next_fetch() == 2


def test_a_replica_that_does_not_answer_is_given_up():
    world = RackWorld()
    world.prefer()
    assert world.next_fetch() == 2
    world.answer(2, KafkaConnectionError("gone"))
    assert world.next_fetch() == 1


@pytest.mark.parametrize(
    "leaders", [{"orders": [1, 1, 1]}, {"orders": [3, 1, 2]}], ids=["replica gone", "new leader"]
)
def test_new_metadata_may_end_the_preference(leaders):
    world = RackWorld()
    world.prefer()
    world.cluster.describe(leaders, epoch=7)
    assert world.next_fetch() == leaders["orders"][0]


def test_a_new_epoch_of_the_leader_ends_the_preference():
    world = RackWorld()
    world.prefer()
    world.cluster.describe({"orders": [1, 1, 2]}, epoch=8)
    assert world.next_fetch() == 1


# --- plans: what stays the same from one fetch to the next ---------------------------------------


def count_looks(world, monkeypatch):
    looks = []
    fetchable = world.subscription.fetchable
    monkeypatch.setattr(world.subscription, "fetchable", lambda: looks.append(1) or fetchable())
    return looks


def test_a_fetch_that_only_goes_on_looks_at_no_other_partition(monkeypatch):
    world = World({P0: 5, P1: 6, P2: 7})
    looks = count_looks(world, monkeypatch)
    world.poll()
    world.answer(1, response(data(0), data(1)))
    world.answer(2, response(data(2)))
    assert world.poll() == {1: {}, 2: {}}
    for offset in (5, 7, 9):
        world.answer(1, response(data(0, batch_at(offset, [b"a", b"b"]))))
        assert world.poll() == {1: {0: offset + 2}}
        world.answer(2, response(data(2, batch_at(offset + 2, [b"a", b"b"]))))
        assert world.poll() == {2: {2: offset + 4}}
    assert len(looks) == 1


@pytest.mark.parametrize("is_answered_first", [True, False])
def test_a_paused_partition_leaves_the_next_fetch(is_answered_first):
    world = World({P0: 5, P1: 6})
    world.poll()
    world.answer(1, response(data(0), data(1)))
    world.poll()
    if is_answered_first:
        world.answer(1, response(data(0, batch_at(5, [b"a"]))))
    world.subscription.pause([P1])
    if not is_answered_first:
        assert world.poll() == {}
        world.answer(1, response(data(0, batch_at(5, [b"a"]))))
    assert world.poll() == {1: {0: 6}}
    forgotten = world.in_flight[1].request.forgotten_topics_data
    assert [topic.partitions for topic in forgotten] == [[1]]
    world.answer(1, response(data(0, batch_at(6, [b"b"]))))
    world.subscription.resume([P1])
    assert world.poll() == {1: {0: 7, 1: 6}}


def test_a_partition_that_rests_after_an_error_is_asked_again_when_others_flow():
    world = World({P0: 5, P1: 6})
    world.poll()
    world.answer(1, response(data(0), data(1)))
    world.poll()
    world.answer(1, response(data(0, batch_at(5, [b"a"])), data(1, error=UnknownServerError.code)))
    assert world.poll() == {1: {0: 6}}
    world.answer(1, response(data(0, batch_at(6, [b"b"]))))
    world.now_ms += 2 * BACKOFF_MS
    assert world.poll() == {1: {0: 7, 1: 6}}


def test_a_fetch_after_a_refused_session_names_all_partitions():
    world = World({P0: 5, P1: 6})
    world.poll()
    world.answer(1, response(data(0), data(1)))
    world.poll()
    world.answer(1, response(data(0, batch_at(5, [b"a"])), session_id=0))  # closed with the answer
    assert world.poll() == {1: {0: 6, 1: 6}}


# --- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partitions", "share", "buffer_bytes", "whole"),
    [
        (1, 4 << 20, 50 << 20, 8 << 20),
        (2, 2 << 20, 50 << 20, 8 << 20),
        (3, 1_398_101, 50 << 20, 8 << 20),
        (4, 1 << 20, 50 << 20, 8 << 20),
        (100, 1 << 20, 50 << 20, 8 << 20),
        (1, 2 << 20, 2 << 20, 2 << 20),
        (1, 1 << 20, 1_000, 1 << 20),  # the largest batch that a broker takes by default
    ],
)
def test_a_fetch_of_no_set_size_is_large_where_partitions_are_few(
    partitions, share, buffer_bytes, whole
):
    positions = {TopicPartition("orders", number): 0 for number in range(partitions)}
    world = World(positions, exact_sizes=False, buffer_bytes=buffer_bytes)
    world.cluster.describe({"orders": [1] * partitions}, epoch=7)
    world.poll()
    request = world.in_flight[1].request
    assert request.max_bytes == whole
    assert {one.partition_max_bytes for one in request.topics[0].partitions} == {share}
