"""Commits: what is sent, what is retried, what is reported."""

import math

import pytest

from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.consumer.offsets.commit import Commit, CommitManager, CommitRetries, Committer
from pyclient.consumer.offsets.named_commits import NamedCommits
from pyclient.errors import (
    CommitFailedError,
    CoordinatorLoadInProgressError,
    IllegalGenerationError,
    KafkaConnectionError,
    KafkaTimeoutError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
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
            self,
            NamedCommits(),
        )
        self.verdict = None
        self.done = []
        if is_found:
            self.find()

    def find(self):
        self.coordinator.want()
        (unsent,) = self.coordinator.poll(self.now_ms).requests
        unsent.on_done(FindCoordinatorResponse(node_id=1, host="h", port=1), self.now_ms)

    def on_commit_error(self, error, committer):
        self.member_errors.append((type(error), committer))
        return self.verdict or error

    def commit(self, offsets=OFFSETS, *, expires_at_ms=1_000, retries=CommitRetries.WAITED_FOR):
        commit = Commit(
            offsets, self.committer, self.done.append, self.now_ms, expires_at_ms, retries
        )
        self.manager.commit(commit)
        return commit

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
    world.commit(retries=CommitRetries.NONE)
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
def test_the_membership_says_what_a_refusal_means(error):
    world = World()
    world.verdict = CommitFailedError("too late")
    world.commit()
    world.sent().on_done(response(error.code), 0)
    assert world.done == [world.verdict]
    assert world.member_errors == [(error, COMMITTER)]


def test_the_membership_may_have_it_sent_again_by_the_member_as_it_is_now():
    world = World()
    world.verdict = Committer(5, "me", "i")
    world.commit()
    world.sent().on_done(response(StaleMemberEpochError.code), 0)
    world.now_ms = BACKOFF_MS
    assert world.sent().request.generation_id_or_member_epoch == 5


@pytest.mark.parametrize("error", [RebalanceInProgressError, OffsetMetadataTooLargeError])
def test_other_refusals_come_as_they_are_and_say_of_which_partition(error):
    world = World()
    world.commit()
    world.sent().on_done(response(error.code), 0)
    (failure,) = world.done
    assert isinstance(failure, error)
    assert "orders-1" in str(failure)


def test_a_retry_comes_from_the_generation_in_which_the_commit_was_asked():
    world = World()
    world.commit()
    world.sent().on_done(response(CoordinatorLoadInProgressError.code), 0)
    world.committer = Committer(5, "me", "i")
    world.now_ms = BACKOFF_MS
    assert world.sent().request.generation_id_or_member_epoch == 4


def test_an_abandoned_commit_is_not_sent_again():
    world = World()
    commit = world.commit()
    sent = world.sent()
    commit.abandon()
    sent.on_done(response(CoordinatorLoadInProgressError.code), 0)
    world.now_ms = BACKOFF_MS
    assert world.nothing_sent()
    assert len(world.done) == 1


def test_an_abandoned_commit_that_waits_for_the_coordinator_is_never_sent():
    world = World(is_found=False)
    commit = world.commit()
    assert world.nothing_sent()
    commit.abandon()
    world.find()
    assert world.nothing_sent()


@pytest.mark.parametrize(
    ("retries", "attempts"), [(CommitRetries.WAITED_FOR, 4), (CommitRetries.REVOCATION, 1)]
)
def test_a_topic_that_does_not_exist_is_not_waited_for(retries, attempts):
    world = World()
    world.commit(expires_at_ms=60_000, retries=retries)
    for _ in range(attempts):
        assert world.done == []
        world.sent().on_done(response(UnknownTopicOrPartitionError.code), world.now_ms)
        world.now_ms += BACKOFF_MS
    (error,) = world.done
    assert isinstance(error, UnknownTopicOrPartitionError)
    assert "orders-1" in str(error)
    assert world.nothing_sent()


def test_a_retry_before_a_revocation_does_not_overwrite_a_later_commit():
    world = World()
    world.commit(retries=CommitRetries.REVOCATION)
    first = world.sent()
    world.commit({P0: OffsetAndMetadata(9)}, retries=CommitRetries.NONE)
    later = world.sent()
    first.on_done(response(CoordinatorLoadInProgressError.code), 0)
    later.on_done(response(), 0)
    world.now_ms = BACKOFF_MS
    (topic,) = world.sent().request.topics
    assert [one.partition_index for one in topic.partitions] == [1]


def test_a_commit_before_a_revocation_of_which_nothing_is_left_is_over():
    world = World()
    world.commit(retries=CommitRetries.REVOCATION)
    first = world.sent()
    first.on_done(response(CoordinatorLoadInProgressError.code), 0)
    world.commit(retries=CommitRetries.NONE)
    assert world.sent().request.topics
    assert world.done == [None]


def test_a_timeout_says_that_the_coordinator_is_unknown_and_why():
    world = World(is_found=False)
    world.commit(expires_at_ms=50)
    world.nothing_sent()
    (unsent,) = world.coordinator.poll(0).requests
    unsent.on_done(CoordinatorLoadInProgressError("still loading"), 0)
    world.now_ms = 50
    assert world.nothing_sent()
    (error,) = world.done
    assert "coordinator of group 'g' is unknown: finding it failed: " in str(error)
    assert "still loading" in str(error)


def test_a_timeout_says_that_the_coordinator_is_silent():
    world = World()
    world.commit(expires_at_ms=50)
    sent = world.sent()
    world.now_ms = 50
    assert world.nothing_sent()
    (error,) = world.done
    assert "node 1 (h:1), has not answered for 50 ms" in str(error)
    sent.on_done(response(), 60)
    assert len(world.done) == 1


def test_a_timeout_says_what_the_last_attempt_met():
    world = World()
    world.commit(expires_at_ms=50)
    world.sent().on_done(response(CoordinatorLoadInProgressError.code), 0)
    world.now_ms = 50
    assert world.nothing_sent()
    (error,) = world.done
    assert "the last attempt failed: " in str(error)
    assert isinstance(error.__cause__, CoordinatorLoadInProgressError)


def test_closing_fails_what_waits():
    world = World(is_found=False)
    world.commit(expires_at_ms=math.inf)
    world.manager.close(KafkaConnectionError("closed"))
    assert world.done == [KafkaConnectionError("closed")]


def test_what_was_read_of_a_topic_before_it_was_recreated_is_not_committed():
    world = World()
    world.cluster.describe({"orders": [1, 1], "payments": [1]})
    other = TopicPartition("payments", 0)
    offsets = {P0: OffsetAndMetadata(5), other: OffsetAndMetadata(6)}
    ids = {P0: b"o" * 16, other: topic_id("payments")}
    commit = Commit(
        offsets, COMMITTER, world.done.append, 0.0, 1_000, CommitRetries.WAITED_FOR, ids
    )
    world.manager.commit(commit)
    unsent = world.sent()
    assert [topic.name for topic in unsent.request.topics] == ["payments"]
    unsent.on_done(OffsetCommitResponse(topics=[]), world.now_ms)
    (error,) = world.done
    assert isinstance(error, UnknownTopicIdError)
    assert "orders-0" in str(error)


def test_a_commit_of_which_nothing_is_left_is_not_sent():
    world = World()
    commit = Commit(
        OFFSETS, COMMITTER, world.done.append, 0.0, 1_000, CommitRetries.NONE,
        {P0: b"o" * 16, P1: b"o" * 16},
    )  # fmt: skip
    world.manager.commit(commit)
    assert not world.manager.poll(0.0).requests
    (error,) = world.done
    assert isinstance(error, UnknownTopicIdError)
