"""From the fetch buffer to the records that `poll` returns. The caller's thread only.

Collecting does not move positions, except in `collect_columns`: `poll` moves them for all records
at once, iteration for one record at a time.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from pyclient import _twin
from pyclient.consumer.fetch.buffer import FetchBuffer
from pyclient.consumer.fetch.completed_fetch import CompletedFetch
from pyclient.consumer.metrics import ConsumerMetrics
from pyclient.consumer.partition_state import PartitionEpoch
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import KafkaError, OffsetOutOfRangeError
from pyclient.records.columns import ColumnsBuilder
from pyclient.records.record import ConsumerRecord
from pyclient.serialization import DeserializeFunction

log = logging.getLogger(__name__)


class CollectedRecords(NamedTuple):
    """Records of one partition, and the position of a program that has all of them."""

    at: PartitionEpoch
    records: list[ConsumerRecord]
    next_offset: int
    leader_epoch: int


class FetchCollector:
    """Takes completed fetches in turn, decodes them, and drops stale ones."""

    def __init__(
        self,
        buffer: FetchBuffer,
        subscription: SubscriptionState,
        metrics: ConsumerMetrics,
        on_room: Callable[[], None],
        key_deserializer: DeserializeFunction | None = None,
        value_deserializer: DeserializeFunction | None = None,
    ) -> None:
        """`on_room` wakes the I/O thread, which may have stopped fetching."""
        self._buffer = buffer
        self._subscription = subscription
        self._metrics = metrics
        self._on_room = on_room
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer

    def collect(self, max_records: int) -> list[CollectedRecords]:
        """The next records, at most `max_records` in all.

        An error comes after all records before it: it is raised only when there are none.

        Raises:
            OffsetOutOfRangeError: the position is gone, and `auto.offset.reset` is none.
            CorruptRecordError: a batch is damaged.
            KafkaError: what the broker refused a partition with.
            Exception: what a deserializer raised.
        """
        collected: list[CollectedRecords] = []
        room = max_records
        resting = self._subscription.resting()
        while room > 0:
            fetch = self._buffer.first(resting)
            if fetch is None or (fetch.error is not None and collected):
                break
            try:
                found = self._read(fetch, room)
            except Exception:
                if not collected:
                    raise
                break
            if found is not None:
                collected.append(found)
                room -= len(found.records)
        return collected

    def collect_columns(self, builder: ColumnsBuilder, max_bytes: int) -> int:
        """Add whole fetches to Arrow columns, until they have `max_bytes` fetched bytes or more.

        Here the positions do move. Raises as `collect` does; deserializers have no part in it.
        """
        size = rows = 0
        resting = self._subscription.resting()
        while size < max_bytes:
            fetch = self._buffer.first(resting)
            if fetch is None or (fetch.error is not None and rows):
                break
            if self._is_stale(fetch):
                self._drop(fetch)
                continue
            if fetch.error is not None:
                self._take_error(fetch, fetch.error)
                continue
            try:
                rows += fetch.read_columns(builder)
            except KafkaError:
                if not rows:
                    raise
                break
            size += fetch.size
            self._finish(fetch)
            self._subscription.consumed(fetch.at, fetch.next_offset, fetch.leader_epoch)
        return rows

    def _read(self, fetch: CompletedFetch, max_records: int) -> CollectedRecords | None:
        if self._is_stale(fetch):
            self._drop(fetch)
            return None
        if fetch.error is not None:
            self._take_error(fetch, fetch.error)
            return None
        records = self._deserialized(fetch, fetch.read(max_records))
        self._finish(fetch)
        if records:
            return CollectedRecords(fetch.at, records, fetch.next_offset, fetch.leader_epoch)
        # Control batches and aborted ones: nothing for the program, but the position moves.
        self._subscription.consumed(fetch.at, fetch.next_offset, fetch.leader_epoch)
        return None

    def _is_stale(self, fetch: CompletedFetch) -> bool:
        """Whether the partition was sought, reset or lost after the fetch was sent."""
        return not self._subscription.is_current(fetch.at)

    def _take_error(self, fetch: CompletedFetch, error: KafkaError) -> None:
        """Drop a fetch that failed, and reset its partition or raise."""
        try:
            self._on_error(fetch, error)
        finally:
            self._drop(fetch)

    def _finish(self, fetch: CompletedFetch) -> None:
        if fetch.is_drained:
            self._metrics.read(fetch.size)
            self._drop(fetch)

    def _drop(self, fetch: CompletedFetch) -> None:
        self._buffer.remove(fetch)
        self._on_room()

    def _on_error(self, fetch: CompletedFetch, error: KafkaError) -> None:
        partition = fetch.at.partition
        reset = self._subscription.default_reset
        if not isinstance(error, OffsetOutOfRangeError):
            self._subscription.retry_any([fetch.at])
            raise error
        topic, number = partition
        what = f"offset {fetch.fetch_offset} of {topic}-{number} is out of range"
        if reset is None:
            self._subscription.retry_any([fetch.at])
            raise OffsetOutOfRangeError(f"{what}, and auto.offset.reset is none")
        log.warning("%s: resetting to the %s", what, reset.name.lower())
        self._subscription.request_reset([partition], reset)

    def _deserialized(
        self, fetch: CompletedFetch, records: list[ConsumerRecord]
    ) -> list[ConsumerRecord]:
        key_of, value_of = self._key_deserializer, self._value_deserializer
        if key_of is None and value_of is None:
            return records
        done: list[ConsumerRecord] = []
        try:
            for record in records:
                topic, headers = record.topic, record.headers
                key = record.key if key_of is None else key_of(topic, headers, record.key)
                value = record.value if value_of is None else value_of(topic, headers, record.value)
                done.append(_twin.deserialized(record, key, value))
        except Exception as error:
            failed = records[len(done)]
            fetch.unread(records[len(done) :])
            if not done:
                error.add_note(
                    f"while deserializing the record at offset {failed.offset} of "
                    f"{failed.topic}-{failed.partition}; to go on without it, seek past it"
                )
                raise
        return done
