"""Looks up offsets by time: the beginning, the end, or the first record at or after a timestamp.

The I/O thread only. A lookup is for one partition; lookups with the same leader share a request.
Retriable errors are retried until the lookup's deadline.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from pyclient.consumer.cluster import Cluster
from pyclient.error_codes import NONE, for_code
from pyclient.errors import (
    KafkaError,
    KafkaTimeoutError,
    UnsupportedForMessageFormatError,
)
from pyclient.net.request_manager import NOTHING_TO_DO, Outcome, PollResult, UnsentRequest
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pyclient.timers import ExponentialBackoff
from pyclient.types import OffsetAndTimestamp, TopicPartition

EARLIEST = -2
LATEST = -1
_NOT_FOUND = -1
_CONSUMER = -1

FoundOffset: TypeAlias = OffsetAndTimestamp | KafkaError | None
"""None where the partition has no record from that moment on."""


class OffsetLookup:
    """One partition's lookup.

    Attributes:
        timestamp: milliseconds, or EARLIEST or LATEST.
        on_done: called once with what was found.
        expires_at_ms: when to give up.
        is_wanted: called before each attempt; if it returns False, the lookup is dropped and
            `on_done` is not called.
    """

    __slots__ = (
        "expires_at_ms",
        "failures",
        "is_wanted",
        "on_done",
        "partition",
        "retry_at_ms",
        "timestamp",
        "trouble",
    )

    def __init__(
        self,
        partition: TopicPartition,
        timestamp: int,
        on_done: Callable[[FoundOffset], None],
        expires_at_ms: float,
        is_wanted: Callable[[], bool],
    ) -> None:
        self.partition = partition
        self.timestamp = timestamp
        self.on_done = on_done
        self.expires_at_ms = expires_at_ms
        self.is_wanted = is_wanted
        self.retry_at_ms = 0.0
        self.failures = 0
        self.trouble: KafkaError | None = None

    def expire(self) -> None:
        """Fail the lookup with a timeout that names the last error."""
        reason = f": {self.trouble}" if self.trouble else ""
        topic, number = self.partition
        error = KafkaTimeoutError(f"the offset of {topic}-{number} was not found in time{reason}")
        error.__cause__ = self.trouble
        self.on_done(error)


_Page: TypeAlias = dict[TopicPartition, OffsetLookup]
"""What one request asks."""


class ListOffsetsManager:
    """Sends lookups to the partitions' leaders."""

    def __init__(
        self,
        cluster: Cluster,
        backoff: ExponentialBackoff,
        connection_to: Callable[[int], int],
        isolation_level: int,
        request_timeout_ms: int,
    ) -> None:
        """`connection_to` gives the connection to use for a node."""
        self._cluster = cluster
        self._backoff = backoff
        self._connection_to = connection_to
        self._isolation_level = isolation_level
        self._request_timeout_ms = request_timeout_ms
        self._waiting: list[OffsetLookup] = []

    def lookup(
        self,
        partition: TopicPartition,
        timestamp: int,
        on_done: Callable[[FoundOffset], None],
        expires_at_ms: float,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Look up one partition; `on_done` is called on the I/O thread."""
        self._waiting.append(OffsetLookup(partition, timestamp, on_done, expires_at_ms, is_wanted))

    def poll(self, now_ms: float) -> PollResult:
        """The ListOffsets requests that can be sent now, one per leader."""
        if not self._waiting:
            return NOTHING_TO_DO
        waiting, self._waiting = self._waiting, []
        by_leader: dict[int, list[_Page]] = {}
        for lookup in waiting:
            if now_ms >= lookup.expires_at_ms:
                lookup.expire()
            elif now_ms < lookup.retry_at_ms:
                self._waiting.append(lookup)
            elif lookup.is_wanted():
                leader = self._leader(lookup, now_ms)
                if leader is not None:
                    _place(lookup, by_leader.setdefault(leader, []))
        requests = [
            self._request(leader, list(page.values()))
            for leader, pages in by_leader.items()
            for page in pages
        ]
        wake_at_ms = min(
            (min(one.retry_at_ms, one.expires_at_ms) for one in self._waiting), default=math.inf
        )
        return PollResult(requests, wake_at_ms)

    def close(self, error: KafkaError) -> None:
        """Fail the lookups that were not answered."""
        waiting, self._waiting = self._waiting, []
        for lookup in waiting:
            lookup.on_done(error)

    def _leader(self, lookup: OffsetLookup, now_ms: float) -> int | None:
        snapshot = self._cluster.snapshot
        leader = snapshot.leader_for_partition(lookup.partition)
        if leader is None:
            topic = lookup.partition.topic
            self._cluster.add_topic(topic)
            self._cluster.request_update()
            error = snapshot.topic_errors.get(topic)
            self._retry(lookup, error() if error else None, now_ms)
        return leader

    def _retry(self, lookup: OffsetLookup, trouble: KafkaError | None, now_ms: float) -> None:
        lookup.trouble = trouble or lookup.trouble
        lookup.retry_at_ms = now_ms + self._backoff.backoff_ms(lookup.failures)
        lookup.failures += 1
        self._waiting.append(lookup)

    def _request(self, leader: int, lookups: list[OffsetLookup]) -> UnsentRequest:
        snapshot = self._cluster.snapshot
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for lookup in lookups:
            topics.setdefault(lookup.partition.topic, []).append(
                ListOffsetsPartition(
                    partition_index=lookup.partition.partition,
                    current_leader_epoch=snapshot.leader_epoch_for_partition(lookup.partition),
                    timestamp=lookup.timestamp,
                )
            )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=self._isolation_level,
            topics=[ListOffsetsTopic(name=name, partitions=of) for name, of in topics.items()],
            timeout_ms=self._request_timeout_ms,
        )
        on_done = partial(self._on_done, lookups)
        return UnsentRequest(request, self._connection_to(leader), on_done)

    def _on_done(self, lookups: list[OffsetLookup], outcome: Outcome, now_ms: float) -> None:
        if isinstance(outcome, KafkaError):
            for lookup in lookups:
                self._on_error(lookup, outcome, now_ms)
            return
        assert isinstance(outcome, ListOffsetsResponse)
        answers = {
            TopicPartition(topic.name, answer.partition_index): answer
            for topic in outcome.topics
            for answer in topic.partitions
        }
        for lookup in lookups:
            answer = answers.get(lookup.partition)
            if answer is None:
                self._retry(
                    lookup, KafkaError("the broker's response leaves out the partition"), now_ms
                )
            elif answer.error_code != NONE:
                self._on_error(lookup, for_code(answer.error_code)(), now_ms)
            elif answer.offset == _NOT_FOUND:
                lookup.on_done(None)
            else:
                lookup.on_done(
                    OffsetAndTimestamp(answer.offset, answer.timestamp, answer.leader_epoch)
                )

    def _on_error(self, lookup: OffsetLookup, error: KafkaError, now_ms: float) -> None:
        if isinstance(error, UnsupportedForMessageFormatError):
            lookup.on_done(None)  # a format without timestamps
        elif error.retriable:
            if error.refresh_metadata:
                self._cluster.request_update()
            self._retry(lookup, error, now_ms)
        else:
            lookup.on_done(error)


def _place(lookup: OffsetLookup, pages: list[_Page]) -> None:
    """Add to the first page without the partition: a request may name it only once."""
    for page in pages:
        if page.setdefault(lookup.partition, lookup) is lookup:
            return
    pages.append({lookup.partition: lookup})
