"""The sparse indexes of a segment: offset to file position, and timestamp to offset.

Stored as `index_file` describes; lookups are binary searches. Guarded by the lock of its log.
"""

import struct
from bisect import bisect_right
from mmap import mmap

from broker_stub.log.batch.header import NO_TIMESTAMP
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.index.index_file import IndexFile

Entry = tuple[int, int]
Buffer = bytearray | mmap


class SparseIndex(IndexFile):
    """The base of both indexes: ascending pairs.

    Lookups raise `DamagedIndexError` if the file is missing.

    Attributes:
        is_damaged: whether it does not match its segment; then it is no longer used.
    """

    __slots__ = ("_entry_max", "_last", "base_offset", "is_damaged")

    def __init__(
        self, path: str, base_offset: int, files: OpenFiles, *, max_bytes: int, stored_bytes: int
    ) -> None:
        """Use a file of `stored_bytes`, which may grow to `max_bytes`."""
        super().__init__(path, files, stored_bytes=stored_bytes)
        self.base_offset = base_offset
        self.limit(max_bytes)
        self._last: Entry | None = None  # the newest entry, read on demand
        self.is_damaged = False

    def limit(self, max_bytes: int) -> None:
        """Set the size to which the file may grow."""
        self._entry_max = max_bytes // self.ENTRY.size

    def entries(self) -> list[Entry]:
        """All entries as stored, with offsets relative to the base offset."""
        return [self._entry(slot) for slot in range(self._size)]

    def is_ordered_at_the_end(self) -> bool:
        """Whether the two newest entries ascend; in a file that ends in zeros they do not."""
        size = self._size
        return size < 2 or self._entry(size - 2) < self._entry(size - 1)

    def clear(self) -> None:
        """Drop all entries, in memory and in the file, and the mark of damage."""
        self._last = None
        self.is_damaged = False
        super().clear()

    def _add(self, first: int, second: int) -> None:
        self._last = (first, second)
        self._append(first, second)

    def _entry(self, slot: int) -> Entry:
        first, second = self._fields(slot)
        return first, second

    def _newest(self) -> Entry | None:
        if self._last is None and self._size:
            self._last = self._entry(self._size - 1)
        return self._last

    def _first_above(self, limit: int, field: int) -> Entry | None:
        """The first entry whose `field` is more than `limit`. Slow: not for common lookups."""
        slots = range(self._size)
        slot = bisect_right(slots, limit, key=lambda slot: self._entry(slot)[field])
        return self._entry(slot) if slot < self._size else None

    def _last_at_most(self, limit: int, field: int) -> Entry | None:
        """The last entry whose `field` is at most `limit`; fields never decrease."""
        slot = _count_at_most(self.ENTRY, self._tail, limit, field)
        if slot or not self._stored:
            return self._entry(self._stored + slot - 1) if slot else None
        slot = _count_at_most(self.ENTRY, self._stored_bytes(), limit, field)
        return self._entry(slot - 1) if slot else None


def _count_at_most(entry: struct.Struct, stored: Buffer, limit: int, field: int) -> int:
    """The number of entries, which ascend, with a `field` of at most `limit`."""
    unpack, size = entry.unpack_from, entry.size
    return bisect_right(
        range(len(stored) // size), limit, key=lambda slot: unpack(stored, slot * size)[field]
    )


class OffsetIndex(SparseIndex):
    """From the last offset of a batch to the position where the batch starts."""

    __slots__ = ()

    ENTRY = struct.Struct(">ii")

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another entry."""
        return self._size >= self._entry_max

    def append(self, last_offset: int, position: int) -> None:
        """Index the batch that starts at `position`."""
        self._add(last_offset - self.base_offset, position)

    def lookup(self, offset: int) -> Entry | None:
        """The last entry at or before `offset`, as (last offset of a batch, its position)."""
        return self._absolute(self._last_at_most(offset - self.base_offset, field=0))

    def lookup_position(self, position: int) -> Entry | None:
        """The last entry at or before a position, as (last offset of a batch, its position)."""
        return self._absolute(self._last_at_most(position, field=1))

    def lookup_after(self, offset: int) -> Entry | None:
        """The first entry at or after `offset`, as (last offset of a batch, its position)."""
        return self._absolute(self._first_above(offset - self.base_offset - 1, field=0))

    def position_after(self, position: int) -> int | None:
        """The first indexed position after `position`."""
        entry = self._first_above(position, field=1)
        return None if entry is None else entry[1]

    def last(self) -> Entry | None:
        """The newest entry, as (last offset of a batch, its position)."""
        return self._absolute(self._newest())

    def _absolute(self, entry: Entry | None) -> Entry | None:
        return None if entry is None else (entry[0] + self.base_offset, entry[1])


class TimeIndex(SparseIndex):
    """From the latest timestamp so far to the last offset of the batch that has it."""

    __slots__ = ()

    ENTRY = struct.Struct(">qi")

    @property
    def is_full(self) -> bool:
        """Whether there is room only for the entry that a roll adds."""
        return self._size >= self._entry_max - 1

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry, unless the newest one is at least as late."""
        if timestamp_ms > self.last()[0]:
            self._add(timestamp_ms, offset - self.base_offset)

    def lookup(self, timestamp_ms: int) -> Entry:
        """The last entry at or before a timestamp, as (timestamp, offset).

        Batches that end before its offset are older. Without an entry: (-1, base offset).
        """
        return self._absolute(self._last_at_most(timestamp_ms, field=0))

    def last(self) -> Entry:
        """The newest entry, as (timestamp, offset); without one, (-1, base offset)."""
        return self._absolute(self._newest())

    def _absolute(self, entry: Entry | None) -> Entry:
        if entry is None:
            return NO_TIMESTAMP, self.base_offset
        return entry[0], entry[1] + self.base_offset
