"""Looks up offsets by time: the beginning, the end, or the first record at or after a timestamp.

The I/O thread only. A lookup is for one partition; lookups with the same leader share a request,
and those that failed together are retried together. Without a leader, a lookup waits for the next
metadata. Retriable errors are retried until the lookup's deadline.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from pyclient.consumer.cluster import Cluster
from pyclient.error_codes import NONE, for_code
from pyclient.errors import (
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
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


@dataclass(eq=False, slots=True)
class OffsetLookup:
    """One partition's lookup.

    Attributes:
        timestamp: milliseconds, or EARLIEST or LATEST.
        on_done: called once with what was found.
        expires_at_ms: when to give up.
        is_wanted: called before each attempt; if it returns False, the lookup is dropped and
            `on_done` is not called.
    """

    partition: TopicPartition
    timestamp: int
    on_done: Callable[[FoundOffset], None]
    expires_at_ms: float
    is_wanted: Callable[[], bool]
    retry_at_ms: float = field(default=0.0, init=False)
    seen_version: int = field(default=-1, init=False)  # of the metadata that has no leader
    failures: int = field(default=0, init=False)
    trouble: KafkaError | None = field(default=None, init=False)

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
        self._in_flight: dict[OffsetLookup, None] = {}

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
        if not (self._waiting or self._in_flight):
            return NOTHING_TO_DO
        for lookup in [one for one in self._in_flight if now_ms >= one.expires_at_ms]:
            del self._in_flight[lookup]
            lookup.expire()
        version = self._cluster.snapshot.version
        waiting, self._waiting = self._waiting, []
        by_leader: dict[int, list[_Page]] = {}
        for lookup in waiting:
            if now_ms >= lookup.expires_at_ms:
                lookup.expire()
            elif now_ms < lookup.retry_at_ms or lookup.seen_version == version:
                self._waiting.append(lookup)
            elif lookup.is_wanted():
                leader = self._leader(lookup)
                if leader is not None:
                    _place(lookup, by_leader.setdefault(leader, []))
        requests = [
            self._request(leader, list(page.values()))
            for leader, pages in by_leader.items()
            for page in pages
        ]
        times_ms = [_wake_at_ms(one, version) for one in self._waiting]
        times_ms += [one.expires_at_ms for one in self._in_flight]
        return PollResult(requests, min(times_ms, default=math.inf))

    def trouble(self, partition: TopicPartition) -> KafkaError | None:
        """Why the lookup of a partition takes so long, if that is known. Any thread."""
        for lookup in (*self._waiting, *self._in_flight):
            if lookup.partition == partition and lookup.trouble is not None:
                return lookup.trouble
        return None

    def close(self, error: KafkaError) -> None:
        """Fail the lookups that were not answered."""
        waiting, self._waiting = self._waiting, []
        for lookup in waiting:
            lookup.on_done(error)

    def _leader(self, lookup: OffsetLookup) -> int | None:
        snapshot = self._cluster.snapshot
        leader = snapshot.leader_for_partition(lookup.partition)
        if leader is None:
            topic, number = lookup.partition
            self._cluster.add_topic(topic)
            self._cluster.request_update()
            error = snapshot.topic_errors.get(topic)
            lookup.trouble = (
                LeaderNotAvailableError(f"no leader of {topic}-{number} is known")
                if error is None
                else error(f"topic {topic!r}")
            )
            lookup.seen_version = snapshot.version
            self._waiting.append(lookup)
        return leader

    def _retry_at_ms(self, lookups: Sequence[OffsetLookup], now_ms: float) -> float:
        """When to repeat what has failed together: all at once."""
        return now_ms + self._backoff.backoff_ms(min(one.failures for one in lookups))

    def _retry(self, lookup: OffsetLookup, trouble: KafkaError, retry_at_ms: float) -> None:
        lookup.trouble = trouble
        lookup.retry_at_ms = retry_at_ms
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
        broker = snapshot.brokers.get(leader)
        where = f"node {leader}" + (f" ({broker.host}:{broker.port})" if broker else "")
        for lookup in lookups:
            lookup.trouble = KafkaTimeoutError(f"{where} has not answered")
        self._in_flight.update(dict.fromkeys(lookups))
        return UnsentRequest(request, self._connection_to(leader), on_done)

    def _on_done(self, lookups: list[OffsetLookup], outcome: Outcome, now_ms: float) -> None:
        retry_at_ms = self._retry_at_ms(lookups, now_ms)
        lookups = [one for one in lookups if one in self._in_flight]  # the others have expired
        for lookup in lookups:
            del self._in_flight[lookup]
        if isinstance(outcome, KafkaError):
            for lookup in lookups:
                self._on_error(lookup, outcome, retry_at_ms)
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
                trouble = KafkaError("the broker's response leaves out the partition")
                self._retry(lookup, trouble, retry_at_ms)
            elif answer.error_code != NONE:
                self._on_error(lookup, for_code(answer.error_code)(), retry_at_ms)
            elif answer.offset == _NOT_FOUND:
                lookup.on_done(None)
            else:
                lookup.on_done(
                    OffsetAndTimestamp(answer.offset, answer.timestamp, answer.leader_epoch)
                )

    def _on_error(self, lookup: OffsetLookup, error: KafkaError, retry_at_ms: float) -> None:
        if isinstance(error, UnsupportedForMessageFormatError):
            lookup.on_done(None)  # a format without timestamps
        elif error.retriable:
            if error.refresh_metadata:
                self._cluster.request_update()
            self._retry(lookup, error, retry_at_ms)
        else:
            lookup.on_done(error)


def _wake_at_ms(lookup: OffsetLookup, version: int) -> float:
    if lookup.seen_version == version:
        return lookup.expires_at_ms  # new metadata wakes the loop
    return min(lookup.retry_at_ms, lookup.expires_at_ms)


def _place(lookup: OffsetLookup, pages: list[_Page]) -> None:
    """Add to the first page without the partition: a request may name it only once."""
    for page in pages:
        if page.setdefault(lookup.partition, lookup) is lookup:
            return
    pages.append({lookup.partition: lookup})
