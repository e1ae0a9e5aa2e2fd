"""The sparse indexes of a segment: offset to file position, and time to offset.

Entries are appended in order and never changed. The newest ones wait in memory and go to the file
in pieces: at `SPILL_BYTES`, at a flush, at a roll and at a clean stop. The file part is read
through a memory map. So an index costs neither a system call per entry nor a descriptor of its
own, and its file always ends with a whole entry. What a crash keeps from the file, recovery writes
anew from the log. Guarded by the lock of its log.
"""

import os
import struct
from bisect import bisect_right
from mmap import mmap
from typing import ClassVar, Final

from broker_stub import diagnostics
from broker_stub.log.batch_header import NO_TIMESTAMP
from broker_stub.log.open_files import OpenFiles

SPILL_BYTES: Final = 4096

Entry = tuple[int, int]
Buffer = bytearray | mmap


class SparseIndex:
    """What both indexes share: entries of one size in a file, the newest ones in memory."""

    __slots__ = (
        "_entry_max",
        "_files",
        "_last",
        "_size",
        "_stored",
        "_tail",
        "base_offset",
        "path",
    )

    ENTRY: ClassVar[struct.Struct]

    def __init__(
        self, path: str, base_offset: int, files: OpenFiles, *, max_bytes: int, stored_bytes: int
    ) -> None:
        """Over a file of `stored_bytes`, of which whole entries count."""
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._entry_max = max_bytes // self.ENTRY.size
        self._stored = stored_bytes // self.ENTRY.size
        self._size = self._stored  # with the entries in memory
        self._tail = bytearray()
        self._last: Entry | None = None  # the newest entry, once it was asked for

    def __len__(self) -> int:
        return self._size

    def entries(self) -> list[Entry]:
        """All entries as they are stored: offsets are relative to the base offset."""
        return [self._entry(slot) for slot in range(self._size)]

    def is_ordered_at_the_end(self) -> bool:
        """Whether the two newest entries ascend: they don't in a file that ends in zeros."""
        size = self._size
        return size < 2 or self._entry(size - 2) < self._entry(size - 1)

    def spill(self) -> None:
        """Append what waits in memory to the file; make the file if there is none."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            position = self._stored * self.ENTRY.size
            # A file of Kafka's own may be longer, and so may one whose last spill failed.
            os.ftruncate(descriptor, position)
            written = 0
            while written < len(self._tail):
                written += os.pwrite(descriptor, self._tail[written:], position + written)
        finally:
            os.close(descriptor)
        self._stored = self._size
        self._tail.clear()
        self._files.forget(self.path)  # a map has the length that the file had

    def clear(self) -> None:
        """Forget all entries, in the file too: they are about to be written anew."""
        self._stored = self._size = 0
        self._last = None
        self._tail.clear()
        self.spill()

    def _append(self, first: int, second: int) -> None:
        self._tail += self.ENTRY.pack(first, second)
        self._last = (first, second)
        self._size += 1
        if len(self._tail) >= SPILL_BYTES:
            try:
                self.spill()
            except OSError as error:
                # The batch is in the log and will be acked: a full disk fails the next one.
                diagnostics.warn("index %s stays in memory: %s", self.path, error)

    def _entry(self, slot: int) -> Entry:
        size = self.ENTRY.size
        if slot >= self._stored:
            first, second = self.ENTRY.unpack_from(self._tail, (slot - self._stored) * size)
        else:
            stored = self._files.map(self.path).bytes
            first, second = self.ENTRY.unpack_from(stored, slot * size)
        return first, second

    def _newest(self) -> Entry | None:
        if self._last is None and self._size:
            self._last = self._entry(self._size - 1)
        return self._last

    def _last_at_most(self, limit: int, field: int) -> Entry | None:
        """The last entry whose `field` is at most `limit`; fields never decrease."""
        slot = _count_at_most(self.ENTRY, self._tail, limit, field)
        if slot or not self._stored:
            return self._entry(self._stored + slot - 1) if slot else None
        slot = _count_at_most(self.ENTRY, self._files.map(self.path).bytes, limit, field)
        return self._entry(slot - 1) if slot else None


def _count_at_most(entry: struct.Struct, stored: Buffer, limit: int, field: int) -> int:
    """How many entries, which ascend, have a `field` of at most `limit`."""
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
        self._append(last_offset - self.base_offset, position)

    def lookup(self, offset: int) -> Entry | None:
        """The last entry at or before `offset`, as (last offset of a batch, its position)."""
        return self._absolute(self._last_at_most(offset - self.base_offset, field=0))

    def lookup_position(self, position: int) -> Entry | None:
        """The last entry at or before a position, as (last offset of a batch, its position)."""
        return self._absolute(self._last_at_most(position, field=1))

    def last(self) -> Entry | None:
        """The newest entry, as (last offset of a batch, its position)."""
        return self._absolute(self._newest())

    def _absolute(self, entry: Entry | None) -> Entry | None:
        return None if entry is None else (entry[0] + self.base_offset, entry[1])


class TimeIndex(SparseIndex):
    """From the latest timestamp so far to the last offset of the batch that brought it."""

    __slots__ = ()

    ENTRY = struct.Struct(">qi")

    @property
    def is_full(self) -> bool:
        """Whether only the entry that the roll forces has room."""
        return self._size >= self._entry_max - 1

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry, unless the newest one is as late already."""
        if timestamp_ms > self.last()[0]:
            self._append(timestamp_ms, offset - self.base_offset)

    def lookup(self, timestamp_ms: int) -> int:
        """An offset such that all batches that end before it are older than `timestamp_ms`."""
        found = self._last_at_most(timestamp_ms, field=0)
        return self.base_offset if found is None else found[1] + self.base_offset

    def last(self) -> Entry:
        """The newest entry as (timestamp, offset); without one, no timestamp and the base."""
        newest = self._newest()
        if newest is None:
            return NO_TIMESTAMP, self.base_offset
        return newest[0], newest[1] + self.base_offset
