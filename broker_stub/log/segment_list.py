"""The segments of a log in order: which one holds an offset, and which batches a read gets.

Guarded by the lock of its log.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from broker_stub.log.files.file_slice import FileSlice
from broker_stub.log.index.transaction_index import AbortedTransaction
from broker_stub.log.segment import Segment
from pyclient.errors import CorruptRecordError

_BASE_OFFSET: Final = attrgetter("base_offset")


class LogRead(NamedTuple):
    """Whole batches of one segment, the one that contains the asked offset first."""

    records: FileSlice | None
    """None: there is nothing to read at this offset yet."""
    next_offset: int
    """Where a reader goes on."""


class SegmentList:
    """Segments by base offset; the last one is active. A new log has none."""

    __slots__ = ("_on_damaged", "_read_end", "_segments")

    def __init__(self, on_damaged: Callable[[Segment], None]) -> None:
        """Without segments; `on_damaged` is told when one needs its indexes made anew."""
        self._on_damaged = on_damaged
        self._segments: list[Segment] = []
        # Where the last read ended (offset, segment, position): most readers go on there.
        self._read_end: tuple[int, Segment, int] | None = None

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def active(self) -> Segment:
        """The segment that takes the appends."""
        return self._segments[-1]

    def all(self) -> Sequence[Segment]:
        """The segments, oldest first; not to be kept."""
        return self._segments

    def since(self, offset: int) -> list[Segment]:
        """The segment that holds `offset`, and those after it."""
        return self._segments[self._holding(offset) :]

    def add(self, segment: Segment) -> None:
        """Make a segment the active one."""
        segment.on_damaged = self._on_damaged
        self._segments.append(segment)

    def remove_oldest(self, count: int) -> list[Segment]:
        """Take the oldest segments out."""
        removed = self._segments[:count]
        del self._segments[:count]
        self._read_end = None
        return removed

    def has(self, segments: Iterable[Segment]) -> bool:
        """Whether these are all there still."""
        return set(segments) <= set(self._segments)

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Put a segment in the place of others that lie side by side."""
        new.on_damaged = self._on_damaged
        at = self._segments.index(old[0])
        self._segments[at : at + len(old)] = [new]
        self._read_end = None

    def read(
        self, offset: int, max_bytes: int, end_offset: int, log_end_offset: int, min_one_batch: bool
    ) -> LogRead:
        """Batches from `offset` on that lie before `end_offset`; see `PartitionLog.read`."""
        try:
            at, position = self._locate(offset)
            segment = self._segments[at]
            limit, next_offset = self._limit_in(at, position, end_offset, log_end_offset)
            if limit - position > max_bytes:
                limit, next_offset = segment.whole_batches(position, max_bytes, limit)
        except CorruptRecordError:
            if self._read_end is None:
                raise
            # The last read may have ended with a batch whose length is damaged.
            self._read_end = None
            return self.read(offset, max_bytes, end_offset, log_end_offset, min_one_batch)
        if limit - position > max_bytes and not min_one_batch:
            return LogRead(None, offset)
        if limit <= position:
            return LogRead(None, offset)
        self._read_end = (next_offset, segment, limit)
        return LogRead(FileSlice(segment.file(), position, limit - position), next_offset)

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that may have records in a range of offsets.

        Their entries stand where their markers are, which may be much later.
        """
        found = []
        for segment in self.since(from_offset):
            if not segment.transaction_index:
                continue  # as in most: thousands of segments are passed over quickly
            transactions, complete = segment.transaction_index.search(from_offset, to_offset)
            found += transactions
            if complete:
                break
        return found

    def _holding(self, offset: int) -> int:
        return max(bisect_right(self._segments, offset, key=_BASE_OFFSET) - 1, 0)

    def _locate(self, offset: int) -> tuple[int, int]:
        """Which segment has the batch of `offset`, or the next batch after it, and where."""
        segments = self._segments
        at = self._holding(offset)
        if self._read_end is not None:
            next_offset, segment, position = self._read_end
            if next_offset == offset and segment is segments[at] and position < segment.size:
                return at, position
        # Compaction can leave a segment that ends before the next one starts.
        while (found := segments[at].find(offset)) is None:
            if at + 1 == len(segments):
                return at, segments[at].size
            at += 1
        return at, found[0]

    def _limit_in(
        self, at: int, position: int, end_offset: int, log_end_offset: int
    ) -> tuple[int, int]:
        """Where in a segment the batches before `end_offset` end, and the offset after them.

        Where the way there is damaged, batches from `position` on end before that.
        """
        segment = self._segments[at]
        last = at + 1 == len(self._segments)
        next_base = log_end_offset if last else self._segments[at + 1].base_offset
        if end_offset < next_base:
            try:
                found = segment.find(end_offset)
            except CorruptRecordError as error:
                if error.position is None or error.position <= position:
                    raise
                return segment.whole_batches(position, error.position - position, error.position)
            if found is not None:
                return found[0], found[1].base_offset
        return segment.size, next_base
