"""Sends commits to the group coordinator. The I/O thread only.

A commit that the caller waits for is retried until its deadline. An asynchronous commit is sent
once: a retry could arrive after a later commit and move the group's offset back.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from pyclient.consumer.cluster import Cluster
from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.error_codes import NONE, for_code
from pyclient.errors import (
    CommitFailedError,
    IllegalGenerationError,
    KafkaError,
    KafkaTimeoutError,
    UnknownMemberIdError,
)
from pyclient.net.request_manager import NOTHING_TO_DO, Outcome, PollResult, UnsentRequest
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from pyclient.timers import ExponentialBackoff
from pyclient.types import OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
OnCommitted: TypeAlias = Callable[[KafkaError | None], None]


class Committer(NamedTuple):
    """The member that commits; the defaults stand for a consumer that is not a member."""

    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class _Commit:
    __slots__ = ("expires_at_ms", "failures", "is_retried", "offsets", "on_done", "retry_at_ms")

    def __init__(
        self, offsets: Offsets, on_done: OnCommitted, expires_at_ms: float, is_retried: bool
    ) -> None:
        self.offsets = offsets
        self.on_done = on_done
        self.expires_at_ms = expires_at_ms
        self.is_retried = is_retried
        self.retry_at_ms = 0.0
        self.failures = 0


class CommitManager:
    """Sends commits in the order of the calls."""

    def __init__(
        self,
        group_id: str,
        coordinator: CoordinatorFinder,
        cluster: Cluster,
        backoff: ExponentialBackoff,
        committer: Callable[[], Committer | KafkaError],
        on_member_error: Callable[[KafkaError, Committer], None],
    ) -> None:
        """`committer` returns the member that commits; `on_member_error` gets its errors."""
        self._group_id = group_id
        self._coordinator = coordinator
        self._cluster = cluster
        self._backoff = backoff
        self._committer = committer
        self._on_member_error = on_member_error
        self._waiting: deque[_Commit] = deque()
        self.commit_total = 0

    def commit(
        self, offsets: Offsets, on_done: OnCommitted, expires_at_ms: float, is_retried: bool
    ) -> None:
        """Commit; `on_done` is called on the I/O thread, with None if all is well."""
        if offsets:
            self._waiting.append(_Commit(offsets, on_done, expires_at_ms, is_retried))
        else:
            on_done(None)

    def poll(self, now_ms: float) -> PollResult:
        """The OffsetCommit requests that can be sent now."""
        if not self._waiting:
            return NOTHING_TO_DO
        connection = self._coordinator.want()
        requests = []
        waiting, self._waiting = self._waiting, deque()
        for commit in waiting:
            if now_ms >= commit.expires_at_ms:
                commit.on_done(KafkaTimeoutError("the offsets were not committed in time"))
            elif connection is None or now_ms < commit.retry_at_ms:
                self._waiting.append(commit)
            else:
                committer = self._committer()
                if isinstance(committer, KafkaError):
                    commit.on_done(committer)
                else:
                    requests.append(self._request(commit, committer, connection))
        wake_at_ms = min(
            (
                min(one.expires_at_ms, math.inf if connection is None else one.retry_at_ms)
                for one in self._waiting
            ),
            default=math.inf,
        )
        return PollResult(requests, wake_at_ms)

    def close(self, error: KafkaError) -> None:
        """Fail the commits that were not sent."""
        waiting, self._waiting = self._waiting, deque()
        for commit in waiting:
            commit.on_done(error)

    def _request(self, commit: _Commit, committer: Committer, connection: int) -> UnsentRequest:
        self.commit_total += 1
        snapshot = self._cluster.snapshot
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, number), offset in commit.offsets.items():
            topics.setdefault(topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=number,
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
                OffsetCommitRequestTopic(
                    name=name, topic_id=snapshot.topic_id(name), partitions=partitions
                )
                for name, partitions in topics.items()
            ],
        )
        return UnsentRequest(request, connection, partial(self._on_done, commit, committer))

    def _on_done(
        self, commit: _Commit, committer: Committer, outcome: Outcome, now_ms: float
    ) -> None:
        error = outcome if isinstance(outcome, KafkaError) else _first_error(outcome)
        if error is None:
            commit.on_done(None)
            return
        self._coordinator.on_error(error, now_ms)
        if error.retriable and commit.is_retried and now_ms < commit.expires_at_ms:
            commit.retry_at_ms = now_ms + self._backoff.backoff_ms(commit.failures)
            commit.failures += 1
            self._waiting.appendleft(commit)
            return
        self._on_member_error(error, committer)
        if isinstance(error, UnknownMemberIdError | IllegalGenerationError):
            error = _commit_failed(error)
        commit.on_done(error)


def _first_error(response: object) -> KafkaError | None:
    assert isinstance(response, OffsetCommitResponse)
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code != NONE:
                where = f" of {topic.name}-{partition.partition_index}" if topic.name else ""
                return for_code(partition.error_code)(f"committing the offset{where}")
    return None


def _commit_failed(cause: KafkaError) -> CommitFailedError:
    error = CommitFailedError(
        "the group has rebalanced without this consumer, and its partitions belong to others: "
        "the time between two polls was longer than max.poll.interval.ms (poll more often, or "
        "return fewer records by max.poll.records), or heartbeats did not get through"
    )
    error.__cause__ = cause
    return error
