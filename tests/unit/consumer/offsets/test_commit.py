"""Commits: what is sent, what is tried again, what is told."""

import math

import pytest

from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.consumer.offsets.commit import CommitManager, Committer
from pyclient.errors import (
    CommitFailedError,
    CoordinatorLoadInProgressError,
    IllegalGenerationError,
    KafkaConnectionError,
    KafkaTimeoutError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.net.request_manager import coordinator_connection
from pyclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pyclient.types import OffsetAndMetadata, TopicPartition
from tests.support.consumer_parts import BACKOFF_MS, FakeCluster, new_backoff, new_inbox, topic_id

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
OFFSETS = {P0: OffsetAndMetadata(5, "note", 3), P1: OffsetAndMetadata(6)}
COMMITTER = Committer(4, "me", "i")


class Nodes:
    def add_node(self, broker):
        pass


class World:
    def __init__(self, *, is_found=True):
        self.now_ms = 0.0
        self.cluster = FakeCluster()
        self.cluster.describe({"orders": [1, 1]})
        self.coordinator = CoordinatorFinder("g", Nodes(), new_backoff(), new_inbox())
        self.committer = COMMITTER
        self.member_errors = []
        self.manager = CommitManager(
            "g",
            self.coordinator,
            self.cluster,
            new_backoff(),
            lambda: self.committer,
            lambda error, committer: self.member_errors.append((type(error), committer)),
        )
        self.done = []
        if is_found:
            self.find()

    def find(self):
        self.coordinator.want()
        (unsent,) = self.coordinator.poll(self.now_ms).requests
        unsent.on_done(FindCoordinatorResponse(node_id=1, host="h", port=1), self.now_ms)

    def commit(self, offsets=OFFSETS, *, expires_at_ms=1_000, is_retried=True):
        self.manager.commit(offsets, self.done.append, expires_at_ms, is_retried)

    def sent(self):
        (unsent,) = self.manager.poll(self.now_ms).requests
        return unsent

    def nothing_sent(self):
        return not self.manager.poll(self.now_ms).requests


def response(error=0):
    partitions = [
        OffsetCommitResponsePartition(partition_index=0),
        OffsetCommitResponsePartition(partition_index=1, error_code=error),
    ]
    return OffsetCommitResponse(
        topics=[OffsetCommitResponseTopic(name="orders", partitions=partitions)]
    )


def test_a_commit_says_who_and_what():
    world = World()
    world.commit()
    unsent = world.sent()
    request = unsent.request
    assert unsent.node == coordinator_connection(1)
    assert (request.group_id, request.generation_id_or_member_epoch) == ("g", 4)
    assert (request.member_id, request.group_instance_id) == ("me", "i")
    (topic,) = request.topics
    assert (topic.name, topic.topic_id) == ("orders", topic_id("orders"))
    assert [
        (one.committed_offset, one.committed_metadata, one.committed_leader_epoch)
        for one in topic.partitions
    ] == [(5, "note", 3), (6, "", -1)]
    unsent.on_done(response(), 0)
    assert world.done == [None]


def test_nothing_to_commit_is_done_at_once():
    world = World()
    world.commit({})
    assert world.done == [None]
    assert world.nothing_sent()


def test_a_commit_waits_for_the_coordinator():
    world = World(is_found=False)
    world.commit()
    assert world.nothing_sent()
    assert world.manager.poll(0).next_poll_ms == 1_000
    world.find()
    world.sent()


def test_commits_are_sent_in_order():
    world = World()
    world.commit({P0: OffsetAndMetadata(1)})
    world.commit({P0: OffsetAndMetadata(2)})
    sent = world.manager.poll(0).requests
    assert [one.request.topics[0].partitions[0].committed_offset for one in sent] == [1, 2]


@pytest.mark.parametrize(
    "outcome", [response(CoordinatorLoadInProgressError.code), KafkaConnectionError()]
)
def test_a_passing_failure_is_tried_again_for_who_waits(outcome):
    world = World()
    world.commit()
    world.sent().on_done(outcome, 0)
    assert world.nothing_sent()
    world.now_ms = BACKOFF_MS
    if world.coordinator.connection is None:
        world.find()
    world.sent().on_done(response(), 0)
    assert world.done == [None]


def test_what_nobody_waits_for_is_sent_once():
    world = World()
    world.commit(is_retried=False)
    world.sent().on_done(response(CoordinatorLoadInProgressError.code), 0)
    (error,) = world.done
    assert isinstance(error, CoordinatorLoadInProgressError)


def test_the_time_of_a_commit_can_be_up():
    world = World(is_found=False)
    world.commit(expires_at_ms=50)
    world.now_ms = 50
    assert world.nothing_sent()
    (error,) = world.done
    assert isinstance(error, KafkaTimeoutError)


@pytest.mark.parametrize("error", [UnknownMemberIdError, IllegalGenerationError])
def test_a_member_that_was_removed_learns_what_it_did_wrong(error):
    world = World()
    world.commit()
    world.sent().on_done(response(error.code), 0)
    (failure,) = world.done
    assert isinstance(failure, CommitFailedError)
    assert "max.poll.interval.ms" in str(failure)
    assert isinstance(failure.__cause__, error)
    assert world.member_errors == [(error, COMMITTER)]


@pytest.mark.parametrize("error", [RebalanceInProgressError, OffsetMetadataTooLargeError])
def test_other_refusals_come_as_they_are_and_say_of_which_partition(error):
    world = World()
    world.commit()
    world.sent().on_done(response(error.code), 0)
    (failure,) = world.done
    assert isinstance(failure, error)
    assert "orders-1" in str(failure)


def test_who_may_not_commit_is_told_without_a_request():
    world = World()
    world.committer = RebalanceInProgressError("later")
    world.commit()
    assert world.nothing_sent()
    assert world.done == [world.committer]


def test_closing_fails_what_waits():
    world = World(is_found=False)
    world.commit(expires_at_ms=math.inf)
    world.manager.close(KafkaConnectionError("closed"))
    assert world.done == [KafkaConnectionError("closed")]
