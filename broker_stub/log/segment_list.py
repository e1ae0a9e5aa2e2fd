"""The segments of a log in order: finds the one that holds an offset, and reads from it.

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
    """Whole batches of one segment; the first one contains the requested offset."""

    records: FileSlice | None
    """None: there is nothing to read at this offset yet."""
    next_offset: int
    """The offset of the next read."""


class SegmentList:
    """Segments by base offset; the last one is active. A new log has none."""

    __slots__ = ("_on_damaged", "_read_end", "_segments")

    def __init__(self, on_damaged: Callable[[Segment], None]) -> None:
        """An empty list; `on_damaged` is called with a segment whose indexes need a rebuild."""
        self._on_damaged = on_damaged
        self._segments: list[Segment] = []
        # Where the last read ended (offset, segment, position): most readers continue there.
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
        """The segments, oldest first. This is the list itself: do not keep it."""
        return self._segments

    def since(self, offset: int) -> list[Segment]:
        """The segment that holds `offset`, and those after it."""
        return self._segments[self._holding(offset) :]

    def add(self, segment: Segment) -> None:
        """Append a segment, which becomes the active one."""
        segment.rebuild_indexes_by(self._on_damaged)
        self._segments.append(segment)

    def remove_oldest(self, count: int) -> list[Segment]:
        """Remove the `count` oldest segments from the list and return them."""
        removed = self._segments[:count]
        del self._segments[:count]
        self._read_end = None
        return removed

    def has(self, segments: Iterable[Segment]) -> bool:
        """Whether all of these are still in the list."""
        return set(segments) <= set(self._segments)

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace adjacent segments by one."""
        new.rebuild_indexes_by(self._on_damaged)
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
                limit, next_offset = segment.search.whole_batches(position, max_bytes, limit)
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
        return LogRead(FileSlice(segment.records.file(), position, limit - position), next_offset)

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that may have records in a range of offsets.

        An entry is in the segment of the abort marker, which may be much later.
        """
        found = []
        for segment in self.since(from_offset):
            if not segment.transaction_index:
                continue  # the common case: keeps a walk over thousands of segments fast
            transactions, complete = segment.transaction_index.search(from_offset, to_offset)
            found += transactions
            if complete:
                break
        return found

    def _holding(self, offset: int) -> int:
        return max(bisect_right(self._segments, offset, key=_BASE_OFFSET) - 1, 0)

    def _locate(self, offset: int) -> tuple[int, int]:
        """The segment and position of the batch with `offset`, or of the next batch after it."""
        segments = self._segments
        at = self._holding(offset)
        if self._read_end is not None:
            next_offset, segment, position = self._read_end
            if (
                next_offset == offset
                and segment is segments[at]
                and position < segment.records.size
            ):
                return at, position
        # After compaction a segment may end before the next one starts.
        while (found := segments[at].search.find(offset)) is None:
            if at + 1 == len(segments):
                return at, segments[at].size
            at += 1
        return at, found[0]

    def _limit_in(
        self, at: int, position: int, end_offset: int, log_end_offset: int
    ) -> tuple[int, int]:
        """Where the batches before `end_offset` end in a segment, and the offset after them.

        If there is damage on the way, they end before the damage.
        """
        segment = self._segments[at]
        last = at + 1 == len(self._segments)
        next_base = log_end_offset if last else self._segments[at + 1].base_offset
        if end_offset < next_base:
            try:
                found = segment.search.find(end_offset)
            except CorruptRecordError as error:
                damage = error.position
                if damage is None or damage <= position:
                    raise
                return segment.search.whole_batches(position, damage - position, damage)
            if found is not None:
                return found[0], found[1].base_offset
        return segment.records.size, next_base
