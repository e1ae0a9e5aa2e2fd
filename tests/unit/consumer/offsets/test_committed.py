"""Committed offsets: for the program, and for partitions that start."""

import math

import pytest

from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.consumer.group.membership import OffsetReader
from pyclient.consumer.offsets.committed import CommittedOffsetManager
from pyclient.consumer.offsets.named_commits import NamedCommits
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import (
    GroupAuthorizationError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    UnstableOffsetCommitError,
)
from pyclient.net.request_manager import aside_connection, coordinator_connection
from pyclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from pyclient.types import OffsetAndMetadata, TopicPartition
from tests.support.consumer_parts import BACKOFF_MS, FakeCluster, new_backoff, new_inbox

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Nodes:
    busy = frozenset()

    def add_node(self, broker):
        pass

    def in_flight_count(self, node):
        return int(node in self.busy)


class World:
    def __init__(self, reset=OffsetReset.LATEST):
        self.now_ms = 0.0
        self.nodes = Nodes()
        self.inbox = new_inbox()
        self.cluster = FakeCluster()
        self.named = NamedCommits()
        self.subscription = SubscriptionState(reset)
        self.coordinator = CoordinatorFinder("g", self.nodes, new_backoff(), self.inbox)
        self.manager = CommittedOffsetManager(
            "g",
            self.coordinator,
            self.subscription,
            self.cluster,
            new_backoff(),
            self.inbox,
            self.named,
            self,
        )
        self.find()

    def offset_reader(self):
        return OffsetReader()

    def on_lookup_error(self, error, reader):
        return False

    def find(self):
        self.coordinator.want()
        for unsent in self.coordinator.poll(self.now_ms).requests:
            unsent.on_done(FindCoordinatorResponse(node_id=1, host="h", port=1), self.now_ms)

    def start(self, *partitions):
        self.subscription.assign_from_user(partitions)
        self.subscription.start()

    def sent(self):
        (unsent,) = self.manager.poll(self.now_ms).requests
        return unsent

    def answer(self, unsent, outcome):
        unsent.on_done(outcome, self.now_ms)


def response(*offsets, error=0, partition_error=0):
    """Offsets of partitions 0, 1 ...; -1 is none."""
    partitions = [
        OffsetFetchResponsePartition(
            partition_index=number,
            committed_offset=offset,
            committed_leader_epoch=2,
            metadata="note",
            error_code=partition_error,
        )
        for number, offset in enumerate(offsets)
    ]
    return OffsetFetchResponse(
        error_code=error, topics=[OffsetFetchResponseTopic(name="orders", partitions=partitions)]
    )


def test_a_partition_starts_at_its_committed_offset():
    world = World()
    world.start(P0)
    unsent = world.sent()
    assert unsent.node == coordinator_connection(1)
    assert (unsent.request.group_id, unsent.request.require_stable) == ("g", True)
    (topic,) = unsent.request.topics
    assert (topic.name, topic.partition_indexes) == ("orders", [0])
    world.answer(unsent, response(42))
    assert world.inbox._waiter.woken  # somebody may wait for the position
    assert world.subscription.positions() == {P0: OffsetAndMetadata(42, "", 2)}


def test_partitions_are_asked_for_together_and_once():
    world = World()
    world.start(P0, P1)
    assert world.sent().request.topics[0].partition_indexes == [0, 1]
    assert not world.manager.poll(0).requests


def test_a_partition_without_a_committed_offset_is_reset():
    world = World(OffsetReset.EARLIEST)
    world.start(P0, P1)
    world.answer(world.sent(), response(42, -1))
    assert {at.partition: reset for at, reset in world.subscription.to_reset().items()} == {
        P1: OffsetReset.EARLIEST
    }


def test_without_a_reset_a_missing_offset_is_raised_each_time_the_program_polls():
    world = World(reset=None)
    world.start(P0)
    for _ in range(2):
        world.answer(world.sent(), response(-1))
        assert not world.manager.poll(0).requests
        with pytest.raises(NoOffsetForPartitionError, match="orders-0"):
            world.inbox.run()


def test_a_program_that_seeks_meanwhile_does_not_hear_of_it():
    world = World(reset=None)
    world.start(P0)
    world.answer(world.sent(), response(-1))
    world.subscription.seek(P0, 3)
    world.inbox.run()
    assert world.subscription.position(P0) == 3


def test_an_answer_that_comes_after_a_seek_is_not_taken():
    world = World()
    world.start(P0)
    unsent = world.sent()
    world.subscription.seek(P0, 3)
    world.answer(unsent, response(42))
    assert world.subscription.position(P0) == 3


@pytest.mark.parametrize(
    "outcome",
    [KafkaConnectionError(), response(1, partition_error=UnstableOffsetCommitError.code)],
)
def test_a_passing_failure_is_tried_again(outcome):
    world = World()
    world.start(P0)
    world.answer(world.sent(), outcome)
    assert not world.manager.poll(0).requests
    world.now_ms = BACKOFF_MS
    world.find()
    world.answer(world.sent(), response(42))
    assert world.subscription.position(P0) == 42


def test_a_refusal_is_raised_and_then_tried_again():
    world = World()
    world.start(P0)
    world.answer(world.sent(), response(error=GroupAuthorizationError.code))
    assert not world.manager.poll(0).requests
    with pytest.raises(GroupAuthorizationError):
        world.inbox.run()
    world.sent()


def test_the_program_gets_what_is_committed_and_nothing_for_the_rest():
    world = World()
    found = []
    world.manager.lookup([P0, P1], found.append, math.inf)
    world.answer(world.sent(), response(42, -1))
    assert found == [{P0: OffsetAndMetadata(42, "note", 2)}]


def test_a_lookup_does_not_wait_behind_a_join_that_the_group_holds_back():
    world = World()
    world.coordinator.is_held_up = True
    world.start(P0)
    assert world.sent().node == 1
    world.nodes.busy = {1}  # with a fetch
    world.start(P0, P1)
    assert world.sent().node == aside_connection(1)
    world.coordinator.is_held_up = False
    world.start(P0, P1, TopicPartition("orders", 2))
    assert world.sent().node == coordinator_connection(1)


def test_the_time_of_a_lookup_can_be_up():
    world = World()
    found = []
    world.coordinator.forget("test", 0)
    world.manager.lookup([P0], found.append, 50)
    assert world.manager.poll(0).next_poll_ms == 50
    world.manager.poll(50)
    assert isinstance(found[0], KafkaTimeoutError)


def test_closing_answers_what_waits():
    world = World()
    found = []
    world.coordinator.forget("test", 0)
    world.manager.lookup([P0], found.append, math.inf)
    world.manager.close(KafkaConnectionError("closed"))
    assert found == [KafkaConnectionError("closed")]
