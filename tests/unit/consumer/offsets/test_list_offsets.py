"""Offsets by time, and the resets that are made of them."""

import math

import pytest

from pyclient.consumer.offsets.list_offsets import EARLIEST, LATEST, ListOffsetsManager
from pyclient.consumer.offsets.reset import OffsetResetManager
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.entropy import Entropy
from pyclient.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    NotLeaderOrFollowerError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
)
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pyclient.timers import ExponentialBackoff
from pyclient.types import OffsetAndTimestamp, TopicPartition
from tests.support.consumer_parts import BACKOFF_MS, FakeCluster, new_backoff, new_inbox, started

P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))


class World:
    def __init__(self, reset=OffsetReset.LATEST, *, has_group=True):
        self.now_ms = 0.0
        self.cluster = FakeCluster()
        self.cluster.describe({"orders": [1, 1, 2]}, epoch=7)
        self.inbox = new_inbox()
        self.subscription = SubscriptionState(reset)
        self.lookups = ListOffsetsManager(
            self.cluster, new_backoff(), lambda node: node + 100, 1, 30_000
        )
        self.resets = OffsetResetManager(
            self.subscription, self.lookups, self.inbox, has_group, lambda: 1_000_000.0
        )
        self.found = {}

    def look_up(self, partition, timestamp, expires_at_ms=math.inf):
        self.lookups.lookup(
            partition,
            timestamp,
            lambda found: self.found.update({partition: found}),
            expires_at_ms,
        )

    def poll(self):
        """What is sent: {connection: unsent}."""
        self.resets.poll(self.now_ms)
        return {unsent.node: unsent for unsent in self.lookups.poll(self.now_ms).requests}


def asked(unsent):
    return {
        one.partition_index: one.timestamp
        for topic in unsent.request.topics
        for one in topic.partitions
    }


def answer(unsent, offsets, *, error=0, now_ms=0.0):
    """Answer with offsets by partition number."""
    partitions = [
        ListOffsetsPartitionResponse(
            partition_index=number,
            offset=offset,
            timestamp=-1 if offset < 0 else 1_000 + offset,
            leader_epoch=7,
            error_code=error,
        )
        for number, offset in offsets.items()
    ]
    topic = ListOffsetsTopicResponse(name="orders", partitions=partitions)
    unsent.on_done(ListOffsetsResponse(topics=[topic]), now_ms)


def test_the_partitions_of_a_leader_travel_together():
    world = World()
    for partition in (P0, P1, P2):
        world.look_up(partition, 1_000)
    sent = world.poll()
    assert {node: asked(unsent) for node, unsent in sent.items()} == {
        101: {0: 1_000, 1: 1_000},
        102: {2: 1_000},
    }
    request = sent[101].request
    assert (request.replica_id, request.isolation_level) == (-1, 1)
    assert request.topics[0].partitions[0].current_leader_epoch == 7
    answer(sent[101], {0: 5, 1: -1})
    assert world.found == {P0: OffsetAndTimestamp(5, 1_005, 7), P1: None}


def test_a_partition_asked_for_twice_takes_two_requests():
    world = World()
    world.look_up(P0, EARLIEST)
    world.look_up(P0, LATEST)
    requests = world.lookups.poll(0).requests
    assert [asked(unsent) for unsent in requests] == [{0: EARLIEST}, {0: LATEST}]


@pytest.mark.parametrize("error", [NotLeaderOrFollowerError, UnknownTopicOrPartitionError])
def test_a_passing_failure_is_tried_again_with_new_metadata(error):
    world = World()
    world.look_up(P0, LATEST)
    answer(world.poll()[101], {0: -1}, error=error.code)
    assert world.cluster.update_requests == 1
    assert world.poll() == {}
    world.now_ms = BACKOFF_MS
    answer(world.poll()[101], {0: 5})
    assert world.found[P0].offset == 5


def test_a_broken_connection_is_tried_again():
    world = World()
    world.look_up(P0, LATEST)
    world.poll()[101].on_done(KafkaConnectionError(), 0)
    world.now_ms = BACKOFF_MS
    assert list(world.poll()) == [101]


def test_a_partition_that_the_answer_left_out_is_asked_for_again():
    world = World()
    world.look_up(P0, LATEST)
    answer(world.poll()[101], {})
    world.now_ms = BACKOFF_MS
    assert list(world.poll()) == [101]


def test_a_refusal_is_the_answer():
    world = World()
    world.look_up(P0, LATEST)
    answer(world.poll()[101], {0: -1}, error=TopicAuthorizationError.code)
    assert isinstance(world.found[P0], TopicAuthorizationError)


def test_a_format_without_timestamps_has_nothing_to_find():
    world = World()
    world.look_up(P0, 5)
    answer(world.poll()[101], {0: -1}, error=UnsupportedForMessageFormatError.code)
    assert world.found == {P0: None}


def test_an_unknown_topic_is_asked_about_until_the_time_is_up_and_the_error_says_why():
    world = World()
    world.cluster.describe({}, errors={"orders": UnknownTopicOrPartitionError})
    world.look_up(P0, LATEST, expires_at_ms=150)
    assert world.poll() == {}
    assert world.cluster.added == ["orders"]
    assert world.cluster.update_requests == 1
    world.now_ms = 150
    world.poll()
    assert isinstance(world.found[P0], KafkaTimeoutError)
    assert isinstance(world.found[P0].__cause__, UnknownTopicOrPartitionError)


def test_lookups_without_a_leader_go_out_together_as_soon_as_metadata_is_there():
    world = World()
    world.cluster.describe({})
    for partition in (P0, P1, P2):
        world.look_up(partition, LATEST)
    assert world.poll() == {}
    assert world.lookups.poll(0.0).next_poll_ms == math.inf  # no back-off: metadata wakes it
    world.cluster.describe({"orders": [1, 1, 1]})
    assert [asked(unsent) for unsent in world.poll().values()] == [
        {0: LATEST, 1: LATEST, 2: LATEST}
    ]


def test_what_failed_together_is_repeated_together():
    world = World()
    backoff = ExponentialBackoff(Entropy(1), 100, 1_000)  # with jitter
    world.lookups = ListOffsetsManager(world.cluster, backoff, lambda node: node + 100, 1, 30_000)
    for partition in (P0, P1):
        world.look_up(partition, LATEST)
    answer(world.poll()[101], {0: -1, 1: -1}, error=NotLeaderOrFollowerError.code)
    world.now_ms = world.lookups.poll(0.0).next_poll_ms
    assert asked(world.poll()[101]) == {0: LATEST, 1: LATEST}


def test_a_broker_that_does_not_answer_in_time_is_named():
    world = World()
    world.look_up(P0, LATEST, expires_at_ms=150)
    unsent = world.poll()[101]
    assert world.lookups.poll(0.0).next_poll_ms == 150
    world.now_ms = 150
    world.poll()
    assert isinstance(world.found[P0], KafkaTimeoutError)
    assert "node 1 (broker1:9092) has not answered" in str(world.found[P0])
    world.found.clear()
    answer(unsent, {0: 5}, now_ms=160)
    assert world.found == {}  # too late


def test_closing_answers_what_waits():
    world = World()
    world.look_up(P0, LATEST)
    world.lookups.close(KafkaConnectionError("closed"))
    assert world.found == {P0: KafkaConnectionError("closed")}


# --- resets --------------------------------------------------------------------------------------


def test_a_reset_starts_the_partition_where_it_was_found():
    world = World()
    started(world.subscription, {P0: 3, P1: 4})
    world.subscription.request_reset([P0], OffsetReset.EARLIEST)
    world.subscription.request_reset([P1], OffsetReset.LATEST)
    (unsent,) = world.poll().values()
    assert asked(unsent) == {0: EARLIEST, 1: LATEST}
    assert world.poll() == {}
    answer(unsent, {0: 1, 1: 9})
    assert world.inbox._waiter.woken  # somebody may wait for the position
    assert (world.subscription.position(P0), world.subscription.position(P1)) == (1, 9)


def test_a_reset_that_was_overtaken_by_a_seek_is_dropped():
    world = World()
    started(world.subscription, {P0: 3})
    world.subscription.request_reset([P0], OffsetReset.EARLIEST)
    (unsent,) = world.poll().values()
    world.subscription.seek(P0, 50)
    answer(unsent, {0: 1})
    assert world.subscription.position(P0) == 50


def test_a_lookup_that_nobody_wants_any_more_is_not_repeated():
    world = World()
    started(world.subscription, {P0: 3})
    world.subscription.request_reset([P0], OffsetReset.EARLIEST)
    world.poll()[101].on_done(KafkaConnectionError(), 0)
    world.subscription.seek(P0, 50)
    world.now_ms = BACKOFF_MS
    assert world.poll() == {}


def test_without_a_group_partitions_start_by_the_default_reset():
    world = World(OffsetReset.EARLIEST, has_group=False)
    world.subscription.assign_from_user([P0])
    world.subscription.start()
    (unsent,) = world.poll().values()
    assert asked(unsent) == {0: EARLIEST}


def test_without_a_group_and_a_reset_the_program_has_to_seek():
    world = World(reset=None, has_group=False)
    world.subscription.assign_from_user([P0])
    world.subscription.start()
    assert world.poll() == {}
    with pytest.raises(NoOffsetForPartitionError, match="orders-0"):
        world.inbox.run()


def test_a_refused_reset_is_raised_and_tried_again():
    world = World()
    started(world.subscription, {P0: 3})
    world.subscription.request_reset([P0], OffsetReset.EARLIEST)
    answer(world.poll()[101], {0: -1}, error=TopicAuthorizationError.code)
    assert world.poll() == {}
    with pytest.raises(TopicAuthorizationError):
        world.inbox.run()
    assert list(world.poll()) == [101]


def test_a_reset_by_duration_starts_with_the_first_record_since_then():
    world = World(OffsetReset.by_duration(60_000), has_group=False)
    world.subscription.assign_from_user([P0, P1])
    world.subscription.start()
    (unsent,) = world.poll().values()
    assert asked(unsent) == {0: 940_000, 1: 940_000}
    answer(unsent, {0: 5, 1: -1})
    assert world.subscription.position(P0) == 5
    (unsent,) = world.poll().values()
    assert asked(unsent) == {1: LATEST}  # no record is that young
    answer(unsent, {1: 9})
    assert world.subscription.position(P1) == 9
