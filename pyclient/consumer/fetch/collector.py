"""From the fetch buffer to the records that the program gets. The caller's thread only.

Data is returned only if it begins at the position, and the position moves only over what was
returned or is not a record (a transaction marker, aborted data). So a call is in one of two
states: *open*, from the first byte it reads to the moment when the program has the records and the
positions are moved, or closed. If a call is cut off while it is open, by an exception in a
deserializer or a signal handler anywhere, `recover` puts the positions back and drops what was
fetched: reading goes on at the positions.
"""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyclient import _twin
from pyclient.consumer.fetch.buffer import FetchBuffer
from pyclient.consumer.fetch.completed_fetch import UNLIMITED, CompletedFetch
from pyclient.consumer.metrics import ConsumerMetrics
from pyclient.consumer.partition_state import PartitionEpoch, PositionMove
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import KafkaError, OffsetOutOfRangeError, RecordDeserializationError
from pyclient.records.columns import ColumnsBuilder
from pyclient.records.record import ConsumerRecord
from pyclient.serialization import DeserializeFunction
from pyclient.types import TopicPartition

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
        self._is_open = False
        self._undo: list[PositionMove] = []

    # --- the state of a call -----------------------------------------------------------------

    def advance(self, collected: list[CollectedRecords]) -> None:
        """Move the positions behind what the program is about to get."""
        moves = [PositionMove(one.at, one.next_offset, one.leader_epoch) for one in collected]
        self._advance(moves)

    def _advance(self, moves: list[PositionMove]) -> None:
        self._undo = self._subscription.positions_before(moves)
        self._subscription.advance(moves)

    def _begin(self) -> None:
        self.recover()
        self._undo = []
        self._is_open = True

    def close(self) -> None:
        """The program has the records; or iteration has them, which moves the positions itself."""
        self._is_open = False

    def recover(self, is_cut_off: bool = False) -> None:
        """Undo a call that was cut off: read again from where the program is.

        `is_cut_off` tells that it was, even though it is closed already.
        """
        if not (self._is_open or is_cut_off):
            return
        self._subscription.advance(self._undo)
        # First clear, then refetch: what the I/O thread adds in between is stale.
        self._buffer.clear()
        self._subscription.refetch_all()
        self.close()
        self._on_room()

    # --- records -----------------------------------------------------------------------------

    def collect(self, max_records: int) -> list[CollectedRecords]:
        """The next records, at most `max_records` in all; open until `close`.

        An error comes after all records before it: it is raised only when there are none.

        Raises:
            OffsetOutOfRangeError: the position is gone, and `auto.offset.reset` is none.
            CorruptRecordError: a batch is damaged.
            RecordDeserializationError: what a deserializer raised is its cause.
            KafkaError: what the broker refused a partition with.
        """
        self._begin()
        found: dict[PartitionEpoch, CollectedRecords] = {}
        room = max_records
        resting = self._make_room()
        while room > 0:
            fetch = self._buffer.first(resting)
            if fetch is None or (fetch.error is not None and found):
                break
            if not self._is_next(fetch, found):
                continue
            try:
                self._take_error(fetch)
                room -= self._read(fetch, room, found)
            except KafkaError:
                if found:
                    break
                self.close()
                raise
        return list(found.values())

    def _read(
        self,
        fetch: CompletedFetch,
        max_records: int,
        found: dict[PartitionEpoch, CollectedRecords],
    ) -> int:
        if fetch.error is not None:
            return 0  # taken
        records = self._deserialized(fetch, fetch.read(max_records))
        at, next_offset, leader_epoch = fetch.at, fetch.next_offset, fetch.leader_epoch
        self._finish(fetch)
        if at in found:
            found[at].records.extend(records)
            found[at] = CollectedRecords(at, found[at].records, next_offset, leader_epoch)
        elif records:
            found[at] = CollectedRecords(at, records, next_offset, leader_epoch)
        else:
            # Not records for the program, and none before them waits: the position moves at once.
            self._subscription.advance([PositionMove(at, next_offset, leader_epoch)])
        return len(records)

    # --- columns -----------------------------------------------------------------------------

    def collect_columns(
        self,
        builder: ColumnsBuilder,
        max_bytes: int = UNLIMITED,
        max_rows: int = UNLIMITED,
        end_offsets: Mapping[TopicPartition, int] | None = None,
    ) -> int:
        """Add records to Arrow columns, and move the positions; open until `close`.

        Stops at `max_rows`, and at the end of the fetch with which `max_bytes` fetched bytes are
        reached; never adds a record at or behind a partition's end offset. Raises as `collect`
        does; deserializers have no part in it.
        """
        self._begin()
        ends = end_offsets or {}
        size = rows = 0
        resting = self._make_room()
        moved: dict[PartitionEpoch, PositionMove] = {}
        while size < max_bytes and rows < max_rows:
            fetch = self._buffer.first(resting)
            if fetch is None or (fetch.error is not None and rows):
                break
            if not self._is_next(fetch, moved):
                continue
            if fetch.has_unread:  # of batches that are gone
                self._subscription.refetch([fetch.at])
                self._drop(fetch)
                continue
            end_offset = ends.get(fetch.at.partition, UNLIMITED)
            if fetch.next_offset >= end_offset:
                resting = resting | {fetch.at.partition}
                continue
            try:
                self._take_error(fetch)
                if fetch.error is None:
                    rows += fetch.read_columns(builder, max_rows - rows, end_offset)
                    moved[fetch.at] = PositionMove(fetch.at, fetch.next_offset, fetch.leader_epoch)
                    size += fetch.size
                    self._finish(fetch)
            except KafkaError:
                if rows:
                    break
                self._advance(list(moved.values()))
                self.close()
                raise
        self._advance(list(moved.values()))
        return rows

    # --- fetches -----------------------------------------------------------------------------

    def _make_room(self) -> frozenset[TopicPartition]:
        """The partitions to leave alone; if the buffer is full, paused ones lose their data.

        They are fetched again from their positions when they are resumed. If they kept it, a
        full buffer of paused partitions would stop the others.
        """
        resting = self._subscription.resting()
        if resting and not self._buffer.has_room():
            dropped = self._buffer.of(self._subscription.paused())
            for fetch in dropped:
                self._buffer.remove(fetch)
            self._subscription.refetch({fetch.at for fetch in dropped})
            if dropped:
                self._on_room()
        return resting

    def _is_next(
        self,
        fetch: CompletedFetch,
        ahead: Mapping[PartitionEpoch, CollectedRecords | PositionMove],
    ) -> bool:
        """Whether a fetch begins at the position, or behind what this call has of its partition.

        If not, it is dropped: the partition was sought, reset or lost after the fetch was sent.
        """
        at = fetch.at
        position = self._subscription.position_in(at)
        if position is not None:
            expected = ahead[at].next_offset if at in ahead else position
            if fetch.next_offset == expected:
                return True
            log.warning(
                "dropping what was fetched of %s-%d from offset %d: the position is %d",
                *at.partition, fetch.next_offset, expected,
            )  # fmt: skip
            self._subscription.refetch([at])
        self._drop(fetch)
        return False

    def _take_error(self, fetch: CompletedFetch) -> None:
        """If a fetch failed, drop it, and reset its partition or raise."""
        if fetch.error is not None:
            try:
                self._on_error(fetch, fetch.error)
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
        is_key = True
        try:
            for record in records:
                topic, headers = record.topic, record.headers
                is_key = True
                key = record.key if key_of is None else key_of(topic, headers, record.key)
                is_key = False
                value = record.value if value_of is None else value_of(topic, headers, record.value)
                done.append(_twin.deserialized(record, key, value))
        except Exception as error:
            failed = records[len(done)]
            fetch.unread(records[len(done) :])
            if not done:
                raise _refused(failed, "key" if is_key else "value") from error
        return done


def _refused(record: ConsumerRecord, origin: str) -> RecordDeserializationError:
    topic, number, offset = record.topic, record.partition, record.offset
    return RecordDeserializationError(
        f"the {origin} of the record at offset {offset} of {topic}-{number} cannot be "
        "deserialized; to go on without it, seek past it",
        topic_partition=TopicPartition(topic, number),
        offset=offset,
        timestamp=record.timestamp,
        key=record.key,
        value=record.value,
        headers=record.headers,
        origin=origin,
    )
