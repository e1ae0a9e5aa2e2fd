"""A partition's log as its readers see it: by offset, by time, by transaction.

Any thread; the log's lock guards the list of segments. What changes them is in `partition_log`.
"""

from collections.abc import Callable
from typing import TypeVar

from broker_stub.log.index.transaction_index import AbortedTransaction
from broker_stub.log.leader_epochs import LeaderEpochs
from broker_stub.log.log_state import LogState
from broker_stub.log.producers.transactions import TransactionRanges
from broker_stub.log.segment import Segment
from broker_stub.log.segment_list import LogRead, SegmentList
from broker_stub.log.time_lookup import TimestampAndOffset, find_max_timestamp, find_timestamp
from pyclient.errors import KafkaStorageError, OffsetOutOfRangeError

Result = TypeVar("Result")


class ReadableLog(LogState):
    """The segments of one partition, and what can be read of them until the log is closed."""

    __slots__ = ("_closed", "_segments", "partition", "topic")

    def __init__(
        self,
        topic: str,
        partition: int,
        leader_epochs: LeaderEpochs,
        on_damaged: Callable[[Segment], None],
    ) -> None:
        """Without segments; `on_damaged` is told when one needs its indexes made anew."""
        super().__init__(leader_epochs)
        self.topic = topic
        self.partition = partition
        self._segments = SegmentList(on_damaged)
        self._closed = False

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments at this moment, oldest first."""
        with self._lock:
            return tuple(self._segments)

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        limit_offset: int | None = None,
        min_one_batch: bool = True,
    ) -> LogRead:
        """Whole batches from the one that contains `offset` on, of one segment.

        Only what lies before `limit_offset` (the end of the log, when None). With
        `min_one_batch` the first batch comes even if it is larger than `max_bytes`.

        Raises:
            OffsetOutOfRangeError: the offset is before the start or after the end.
            KafkaStorageError: the disk refused, or the log is closed.
        """
        with self._lock:
            self._check_open()
            end_offset = self._log_end_offset
            if not self._log_start_offset <= offset <= end_offset:
                raise OffsetOutOfRangeError(
                    f"{self.topic}-{self.partition} has offsets {self._log_start_offset} to "
                    f"{end_offset}, not {offset}"
                )
            if limit_offset is not None and limit_offset < end_offset:
                end_offset = limit_offset
            if offset >= end_offset:
                return LogRead(None, offset)
            return self._segments.read(
                offset, max_bytes, end_offset, self._log_end_offset, min_one_batch
            )

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that may have records in a range of offsets."""
        with self._lock:
            self._check_open()
            return self._segments.aborted_transactions(from_offset, to_offset)

    def uncommitted(self) -> TransactionRanges:
        """All aborted transactions, and those that are open."""
        with self._lock:
            start, end = self._log_start_offset, self._log_end_offset
            aborted = self._segments.aborted_transactions(start, end)
            return TransactionRanges(aborted, self.producer_state.open_transactions)

    def lookup_timestamp(self, timestamp_ms: int) -> TimestampAndOffset | None:
        """The first record that is not older than `timestamp_ms`.

        Raises:
            KafkaStorageError, CorruptRecordError: the batch cannot be read.
        """
        with self._lock:
            self._check_open()
            return find_timestamp(self._segments.all(), timestamp_ms, self._log_start_offset)

    def max_timestamp(self) -> TimestampAndOffset | None:
        """The first of the records with the latest timestamp; raises as `lookup_timestamp`."""
        with self._lock:
            self._check_open()
            return find_max_timestamp(self._segments.all())

    def while_open(self, act: Callable[[SegmentList], Result]) -> Result | None:
        """Do something quick to the segments; None if the log is closed, its folder another's."""
        with self._lock:
            return None if self._closed else act(self._segments)

    def _check_open(self) -> None:
        if self._closed:
            raise KafkaStorageError(f"the log of {self.topic}-{self.partition} is closed")
