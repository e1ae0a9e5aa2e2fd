"""A file of fixed-size entries, which are appended in order and never changed.

The newest entries are kept in memory and written at `SPILL_BYTES`, at a roll and at a clean
shutdown; the file is read through a memory map. So an index costs neither a system call per entry
nor a descriptor, and its file always ends with a whole entry. Recovery rebuilds from the log what
a crash lost. Guarded by the lock of its log.
"""

import os
import struct
from mmap import mmap
from typing import ClassVar, Final

from broker_stub import diagnostics
from broker_stub.log.files.open_files import OpenFiles
from pyclient.errors import KafkaStorageError

SPILL_BYTES: Final = 4096


class DamagedIndexError(KafkaStorageError):
    """An index file is missing or too short. It can be rebuilt from the log."""


class IndexFile:
    """The base of all indexes of a segment: entries in memory and in a file."""

    __slots__ = ("_files", "_size", "_stored", "_tail", "path")

    ENTRY: ClassVar[struct.Struct]

    def __init__(self, path: str, files: OpenFiles, *, stored_bytes: int) -> None:
        """Use a file of `stored_bytes`; a torn last entry is ignored."""
        self.path = path
        self._files = files
        self._stored = stored_bytes // self.ENTRY.size
        self._size = self._stored  # with the entries in memory
        self._tail = bytearray()

    def __len__(self) -> int:
        return self._size

    def spill(self) -> None:
        """Append the entries in memory to the file, which is created if missing."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            position = self._stored * self.ENTRY.size
            # Kafka preallocates its index files, and a failed spill leaves a torn tail.
            os.ftruncate(descriptor, position)
            written = 0
            while written < len(self._tail):
                written += os.pwrite(descriptor, self._tail[written:], position + written)
        finally:
            os.close(descriptor)
        self._stored = self._size
        self._tail.clear()
        self._files.forget(self.path)  # an existing map has the old length

    def clear(self) -> None:
        """Drop all entries, in memory and in the file, before a rebuild."""
        self._stored = self._size = 0
        self._tail.clear()
        self.spill()

    def _append(self, *fields: int) -> None:
        self._tail += self.ENTRY.pack(*fields)
        self._size += 1
        if len(self._tail) >= SPILL_BYTES:
            try:
                self.spill()
            except OSError as error:
                # The batch is in the log and will be acked. If the disk is full, the next append
                # fails.
                diagnostics.warn("index %s stays in memory: %s", self.path, error)

    def _fields(self, slot: int) -> tuple[int, ...]:
        size = self.ENTRY.size
        if slot >= self._stored:
            return self.ENTRY.unpack_from(self._tail, (slot - self._stored) * size)
        return self.ENTRY.unpack_from(self._stored_bytes(), slot * size)

    def _stored_bytes(self) -> mmap:
        """The entries in the file.

        Raises:
            DamagedIndexError: the file is missing, or shorter than it was.
        """
        try:
            stored = self._files.map(self.path).bytes
            # Reading a map behind the end of a truncated file kills the process with SIGBUS.
            whole = stored.size() >= len(stored) >= self._stored * self.ENTRY.size
        except (OSError, ValueError) as error:  # the latter: an empty file has no map
            raise DamagedIndexError(str(error)) from error
        if not whole:
            raise DamagedIndexError(f"{self.path} has lost entries")
        return stored
