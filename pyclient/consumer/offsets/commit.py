"""Sends commits to the group coordinator. The I/O thread only.

A commit that the caller waits for is retried until its deadline, and ends with its caller: once
abandoned it is not sent again. An asynchronous commit is sent once: a retry could arrive after a
later commit and move the group's offset back. Every attempt names the member and generation in
which the program asked for it, so that one which comes late is refused.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from pyclient.consumer.cluster import Cluster
from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.consumer.offsets.named_commits import NamedCommits
from pyclient.error_codes import NONE, for_code
from pyclient.errors import (
    CommitFailedError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.metadata import ClusterMetadata
from pyclient.net.request_manager import NOTHING_TO_DO, Outcome, PollResult, UnsentRequest
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.timers import ExponentialBackoff
from pyclient.types import OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
OnCommitted: TypeAlias = Callable[[KafkaError | None], None]


class Committer(NamedTuple):
    """The member that commits; the defaults stand for a consumer that is not a member.

    `generation_id` is the generation of a classic group, or the member's epoch.
    """

    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class CommitRetries(Enum):
    """What a commit does about errors that may pass; the value is for an unknown topic.

    A coordinator may learn late of a new topic, so a few retries are right; but a deleted one
    never comes back, and a rebalance must not wait for it.
    """

    NONE = None
    """Sent once: `commit_async`."""
    WAITED_FOR = 3
    """`commit`."""
    REVOCATION = 0
    """The automatic commit before partitions are given up."""


class CommitErrors(Protocol):
    """What commits ask of the membership."""

    def on_commit_error(self, error: KafkaError, committer: Committer) -> KafkaError | Committer:
        """The coordinator refused a commit: the error to report, or who is to commit instead."""


@dataclass(eq=False, slots=True)
class Commit:
    """One commit. Made by the caller's thread, then used by the I/O thread.

    Attributes:
        topic_ids: of the topics that the offsets are in, where that is known.
        on_done: called on the I/O thread, with None if all is well.
        is_abandoned: the caller has gone; do not send it again. Set by any thread.
    """

    offsets: Offsets
    committer: Committer
    on_done: OnCommitted
    made_at_ms: float
    expires_at_ms: float
    retries: CommitRetries
    topic_ids: Mapping[TopicPartition, bytes] = field(default_factory=dict)
    stale: KafkaError | None = field(default=None, init=False)  # why some offsets were dropped
    is_abandoned: bool = field(default=False, init=False)
    is_done: bool = field(default=False, init=False)
    retry_at_ms: float = field(default=0.0, init=False)
    sent_at_ms: float = field(default=0.0, init=False)
    failures: int = field(default=0, init=False)
    unknown_topic_total: int = field(default=0, init=False)
    last_error: KafkaError | None = field(default=None, init=False)

    def abandon(self) -> None:
        """Nobody waits for it any more. Any thread."""
        self.is_abandoned = True

    def end(self, error: KafkaError | None) -> None:
        """Report the result, once."""
        if not self.is_done:
            self.is_done = True
            self.on_done(error or self.stale)

    def drop_recreated(self, snapshot: ClusterMetadata) -> None:
        """Leave out the offsets in topics that were deleted and recreated since."""
        gone = [
            partition
            for partition, topic_id in self.topic_ids.items()
            if snapshot.topic_id(partition.topic) not in (topic_id, ZERO_UUID)
            and partition in self.offsets
        ]
        if gone:
            names = ", ".join(f"{topic}-{number}" for topic, number in gone)
            self.stale = UnknownTopicIdError(
                f"not committing offsets of {names}: the topic was deleted and recreated"
            )
            self.offsets = {one: at for one, at in self.offsets.items() if one not in gone}

    def yield_to(self, later: "Commit") -> None:
        """A later commit must not be overwritten by a retry of this one."""
        if self.retries is CommitRetries.REVOCATION:
            self.offsets = {
                partition: offset
                for partition, offset in self.offsets.items()
                if partition not in later.offsets
            }

    def may_retry(self, error: KafkaError, now_ms: float) -> bool:
        """Whether to send it again after this error."""
        if self.retries is CommitRetries.NONE or self.is_abandoned or not error.retriable:
            return False
        if not self.offsets:  # later commits have all of them
            return False
        if isinstance(error, UnknownTopicOrPartitionError | UnknownTopicIdError):
            self.unknown_topic_total += 1
            if self.unknown_topic_total > self.retries.value:
                return False
        return now_ms < self.expires_at_ms


class CommitManager:
    """Sends commits in the order of the calls."""

    def __init__(
        self,
        group_id: str,
        coordinator: CoordinatorFinder,
        cluster: Cluster,
        backoff: ExponentialBackoff,
        membership: CommitErrors,
        named: NamedCommits,
    ) -> None:
        self._named = named
        self._group_id = group_id
        self._coordinator = coordinator
        self._cluster = cluster
        self._backoff = backoff
        self._membership = membership
        self._waiting: deque[Commit] = deque()
        self._in_flight: list[Commit] = []
        self.commit_total = 0

    def commit(self, commit: Commit) -> None:
        """Send a commit."""
        if not commit.offsets:
            commit.end(None)
            return
        for earlier in (*self._waiting, *self._in_flight):
            earlier.yield_to(commit)
        self._waiting.append(commit)

    def poll(self, now_ms: float) -> PollResult:
        """The OffsetCommit requests that can be sent now."""
        if not (self._waiting or self._in_flight):
            return NOTHING_TO_DO
        self._expire(now_ms)
        if not self._waiting:
            return PollResult((), self._next_expiry_ms())
        connection = self._coordinator.want()
        requests = []
        waiting, self._waiting = self._waiting, deque()
        for commit in waiting:
            if connection is None or now_ms < commit.retry_at_ms:
                self._waiting.append(commit)
                continue
            commit.drop_recreated(self._cluster.snapshot)
            if not commit.offsets:
                commit.end(None)
            else:
                requests.append(self._request(commit, connection, now_ms))
        wake_at_ms = self._next_expiry_ms()
        if connection is not None:
            wake_at_ms = min((wake_at_ms, *(one.retry_at_ms for one in self._waiting)))
        return PollResult(requests, wake_at_ms)

    def close(self, error: KafkaError) -> None:
        """Fail the commits that were not sent."""
        waiting, self._waiting = self._waiting, deque()
        for commit in waiting:
            commit.end(error)

    def _next_expiry_ms(self) -> float:
        return min(
            (one.expires_at_ms for one in (*self._waiting, *self._in_flight) if not one.is_done),
            default=math.inf,
        )

    def _expire(self, now_ms: float) -> None:
        """End what is late or abandoned; a response that comes later is about nothing then."""
        for commit in (*self._waiting, *self._in_flight):
            if not commit.offsets and commit not in self._in_flight:
                commit.end(None)
            elif commit.is_abandoned:
                commit.end(KafkaTimeoutError("the caller has stopped waiting"))
            elif now_ms >= commit.expires_at_ms and not commit.is_done:
                commit.end(self._timeout(commit, now_ms))
        self._waiting = deque(one for one in self._waiting if not one.is_done)

    def _timeout(self, commit: Commit, now_ms: float) -> KafkaTimeoutError:
        time_ms = commit.expires_at_ms - commit.made_at_ms
        if commit in self._in_flight:
            age_ms = now_ms - commit.sent_at_ms
            reason = f"{self._coordinator.describe()} has not answered for {age_ms:.0f} ms"
        elif self._coordinator.connection is None:
            reason = self._coordinator.describe()
        else:
            reason = f"the last attempt failed: {commit.last_error}"
        error = KafkaTimeoutError(
            f"the offsets were not committed within {time_ms:.0f} ms: {reason}"
        )
        error.__cause__ = commit.last_error
        return error

    def _request(self, commit: Commit, connection: int, now_ms: float) -> UnsentRequest:
        self.commit_total += 1
        commit.sent_at_ms = now_ms
        self._in_flight.append(commit)
        committer = commit.committer
        snapshot = self._cluster.snapshot
        topics: dict[tuple[str, bytes], list[OffsetCommitRequestPartition]] = {}
        for partition, offset in commit.offsets.items():
            topic = partition.topic
            topic_id = commit.topic_ids.get(partition) or snapshot.topic_id(topic)
            topics.setdefault((topic, topic_id), []).append(
                OffsetCommitRequestPartition(
                    partition_index=partition.partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    committed_metadata=offset.metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=committer.generation_id,
            member_id=committer.member_id,
            group_instance_id=committer.group_instance_id,
            topics=[
                OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=partitions)
                for (name, topic_id), partitions in topics.items()
            ],
        )
        return UnsentRequest(request, connection, partial(self._on_done, commit, request))

    def _on_done(
        self, commit: Commit, request: OffsetCommitRequest, outcome: Outcome, now_ms: float
    ) -> None:
        self._in_flight.remove(commit)
        if isinstance(outcome, OffsetCommitResponse):
            self._note_named(request, outcome)
        if isinstance(outcome, KafkaError):
            error: KafkaError | None = outcome
        else:
            error = _first_error(outcome, self._cluster.snapshot)
        if error is None:
            commit.end(None)
            return
        self._coordinator.on_error(error, now_ms)
        if commit.is_done:
            return
        if commit.may_retry(error, now_ms):
            self._retry(commit, error, now_ms)
            return
        verdict = self._membership.on_commit_error(error, commit.committer)
        if isinstance(verdict, KafkaError):
            commit.end(verdict)
        elif commit.is_abandoned or commit.retries is CommitRetries.NONE:
            commit.end(error)
        else:
            commit.committer = verdict
            self._retry(commit, error, now_ms)

    def _note_named(self, request: OffsetCommitRequest, response: OffsetCommitResponse) -> None:
        """Remember what was committed by name alone."""
        accepted = {
            TopicPartition(topic.name, one.partition_index)
            for topic in response.topics
            for one in topic.partitions
            if one.error_code == NONE and topic.topic_id == ZERO_UUID
        }
        if accepted:
            for topic in request.topics:
                for one in topic.partitions:
                    partition = TopicPartition(topic.name, one.partition_index)
                    if partition in accepted:
                        self._named.add(partition, topic.topic_id, one.committed_offset)

    def _retry(self, commit: Commit, error: KafkaError, now_ms: float) -> None:
        commit.last_error = error
        commit.retry_at_ms = now_ms + self._backoff.backoff_ms(commit.failures)
        commit.failures += 1
        self._waiting.appendleft(commit)


def _first_error(response: object, snapshot: ClusterMetadata) -> KafkaError | None:
    assert isinstance(response, OffsetCommitResponse)
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code != NONE:
                name = topic.name or snapshot.topic_names.get(topic.topic_id, "")
                where = f" of {name}-{partition.partition_index}" if name else ""
                return for_code(partition.error_code)(f"committing the offset{where}")
    return None


# --- why a member cannot commit ------------------------------------------------------------------


def not_a_member() -> CommitFailedError:
    """It has no generation to commit in."""
    return CommitFailedError(
        "the consumer is not a member of the group now: keep polling until it has joined"
    )


def in_rebalance() -> RebalanceInProgressError:
    """Its generation is over, and the next has not begun."""
    return RebalanceInProgressError(
        "the group is rebalancing: keep polling until it is done, then commit again"
    )


def commit_failed(cause: KafkaError) -> CommitFailedError:
    """The coordinator has removed it, or has moved on without it."""
    error = CommitFailedError(
        "the group has rebalanced without this consumer, and its partitions belong to others: "
        "the time between two polls was longer than max.poll.interval.ms (poll more often, or "
        "return fewer records by max.poll.records), or heartbeats did not get through"
    )
    error.__cause__ = cause
    return error
