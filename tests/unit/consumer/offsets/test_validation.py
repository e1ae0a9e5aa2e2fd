"""Positions after a change of leader: kept, taken back, reset, or an error for the program."""

import pytest

from pyclient.consumer.offsets.validation import PositionValidator
from pyclient.consumer.partition_state import OffsetReset, PositionMove
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import (
    FencedLeaderEpochError,
    KafkaConnectionError,
    LogTruncationError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from pyclient.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from pyclient.types import OffsetAndMetadata, TopicPartition
from tests.support.consumer_parts import (
    BACKOFF_MS,
    FakeCluster,
    epoch_of,
    new_backoff,
    new_inbox,
    started,
)

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class World:
    """P0 was read up to offset 10, in epoch 3, from node 1."""

    def __init__(self, reset=OffsetReset.EARLIEST):
        self.now_ms = 0.0
        self.cluster = FakeCluster()
        self.cluster.describe({"orders": [1, 1]}, epoch=3)
        self.inbox = new_inbox()
        self.subscription = started(SubscriptionState(reset), {P0: 0})
        self.validator = PositionValidator(
            self.subscription, self.cluster, new_backoff(), self.inbox, lambda node: node + 100
        )
        assert not self.requests()  # a seek without an epoch
        self.subscription.advance([PositionMove(epoch_of(self.subscription, P0), 10, 3)])

    def requests(self):
        return self.validator.poll(self.now_ms).requests

    def elect(self, leader=2, epoch=4):
        self.cluster.describe({"orders": [leader, leader]}, epoch=epoch)
        (unsent,) = self.requests()
        return unsent

    def answer(self, unsent, epoch=3, end_offset=10, error=0):
        answer = EpochEndOffset(
            partition=0, leader_epoch=epoch, end_offset=end_offset, error_code=error
        )
        topic = OffsetForLeaderTopicResult(topic="orders", partitions=[answer])
        unsent.on_done(OffsetForLeaderEpochResponse(topics=[topic]), self.now_ms)

    def fetched_from(self):
        return [target.fetch_offset for target in self.subscription.fetchable()]


def test_the_new_leader_is_asked_where_the_epoch_of_the_position_ends():
    world = World()
    unsent = world.elect()
    assert world.fetched_from() == []
    assert unsent.node == 102
    (topic,) = unsent.request.topics
    (asked,) = topic.partitions
    assert (asked.partition, asked.leader_epoch, asked.current_leader_epoch) == (0, 3, 4)
    assert unsent.request.replica_id == -1
    assert not world.requests()
    world.answer(unsent)
    assert world.fetched_from() == [10]
    assert not world.requests()


def test_a_new_epoch_of_the_same_leader_is_checked_too():
    world = World()
    world.answer(world.elect(leader=1))
    assert world.fetched_from() == [10]


def test_a_truncated_log_takes_the_position_back():
    world = World()
    world.answer(world.elect(), epoch=2, end_offset=7)
    assert world.fetched_from() == [7]
    assert world.subscription.positions() == {P0: OffsetAndMetadata(7, "", 2)}
    assert not world.requests()


def test_an_unknown_epoch_resets_the_position():
    world = World()
    world.answer(world.elect(), epoch=-1, end_offset=-1)
    assert list(world.subscription.to_reset().values()) == [OffsetReset.EARLIEST]


@pytest.mark.parametrize(
    ("epoch", "end_offset", "divergent"), [(2, 7, OffsetAndMetadata(7, "", 2)), (-1, -1, None)]
)
def test_without_a_reset_the_program_gets_an_error_until_it_seeks(epoch, end_offset, divergent):
    world = World(reset=None)
    unsent = world.elect()
    for _ in range(2):
        world.answer(unsent, epoch, end_offset)
        assert world.fetched_from() == []
        with pytest.raises(LogTruncationError) as caught:
            world.inbox.raise_error()
        assert caught.value.divergent_offsets == {P0: divergent}
        (unsent,) = world.requests()
    world.subscription.seek(P0, 7)
    assert not world.requests()
    assert world.fetched_from() == [7]
    world.answer(unsent, epoch, end_offset)  # stale
    world.inbox.raise_error()


def test_records_that_a_poll_returns_meanwhile_move_the_position():
    world = World()
    at = epoch_of(world.subscription, P0)
    first = world.elect()
    world.subscription.advance([PositionMove(at, 12, 3)])  # collected before the election
    assert world.subscription.position(P0) == 12
    world.answer(first, end_offset=12)  # is about the position before
    assert world.fetched_from() == []
    (second,) = world.requests()
    world.answer(second, end_offset=12)
    assert world.fetched_from() == [12]


@pytest.mark.parametrize("failure", [FencedLeaderEpochError, KafkaConnectionError])
def test_a_failure_is_retried_after_new_metadata(failure):
    world = World()
    unsent = world.elect()
    if failure is KafkaConnectionError:
        unsent.on_done(failure("gone"), world.now_ms)
    else:
        world.answer(unsent, error=failure.code)
    assert world.cluster.update_requests == 1
    assert not world.requests()
    world.now_ms += 2 * BACKOFF_MS
    (again,) = world.requests()
    world.answer(again)
    assert world.fetched_from() == [10]


def test_brokers_before_2_3_are_believed():
    world = World()
    world.elect().on_done(UnsupportedVersionError("too old"), world.now_ms)
    assert world.fetched_from() == [10]


def test_a_topic_that_may_not_be_read_is_an_error():
    world = World()
    world.answer(world.elect(), error=TopicAuthorizationError.code)
    with pytest.raises(TopicAuthorizationError):
        world.inbox.raise_error()


def test_metadata_older_than_the_position_is_refreshed_first():
    world = World()
    world.subscription.seek(P0, 10, 5)  # committed by a consumer that knows epoch 5
    assert not world.requests()
    assert world.cluster.update_requests == 1
    unsent = world.elect(epoch=5)
    world.answer(unsent, epoch=5)
    assert world.fetched_from() == [10]


def test_a_partition_without_a_leader_waits_for_one():
    world = World()
    world.cluster.describe({"orders": [-1, 1]}, epoch=4)
    assert not world.requests()
    world.answer(world.elect(leader=2, epoch=5))
    assert world.fetched_from() == [10]
