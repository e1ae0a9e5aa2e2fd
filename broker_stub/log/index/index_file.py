"""A file of entries of one size, appended in order and never changed.

The newest entries wait in memory and go to the file in pieces: at `SPILL_BYTES`, at a roll and at
a clean stop. The file part is read through a memory map. So an index costs neither a system call
per entry nor a descriptor of its own, and its file always ends with a whole entry. What a crash
keeps from the file, recovery writes anew from the log. Guarded by the lock of its log.
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
    """An index's file cannot be read as it was written; the log has all that it said."""


class IndexFile:
    """What all indexes of a segment share."""

    __slots__ = ("_files", "_size", "_stored", "_tail", "path")

    ENTRY: ClassVar[struct.Struct]

    def __init__(self, path: str, files: OpenFiles, *, stored_bytes: int) -> None:
        """Over a file of `stored_bytes`, of which whole entries count."""
        self.path = path
        self._files = files
        self._stored = stored_bytes // self.ENTRY.size
        self._size = self._stored  # with the entries in memory
        self._tail = bytearray()

    def __len__(self) -> int:
        return self._size

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
        self._tail.clear()
        self.spill()

    def _append(self, *fields: int) -> None:
        self._tail += self.ENTRY.pack(*fields)
        self._size += 1
        if len(self._tail) >= SPILL_BYTES:
            try:
                self.spill()
            except OSError as error:
                # The batch is in the log and will be acked: a full disk fails the next one.
                diagnostics.warn("index %s stays in memory: %s", self.path, error)

    def _fields(self, slot: int) -> tuple[int, ...]:
        size = self.ENTRY.size
        if slot >= self._stored:
            return self.ENTRY.unpack_from(self._tail, (slot - self._stored) * size)
        return self.ENTRY.unpack_from(self._stored_bytes(), slot * size)

    def _stored_bytes(self) -> mmap:
        """The file part.

        Raises:
            DamagedIndexError: it is gone, or shorter than it was.
        """
        try:
            stored = self._files.map(self.path).bytes
            # Who reads where a mapped file has been cut off ends the process.
            whole = stored.size() >= len(stored) >= self._stored * self.ENTRY.size
        except (OSError, ValueError) as error:  # the latter: an empty file has no map
            raise DamagedIndexError(str(error)) from error
        if not whole:
            raise DamagedIndexError(f"{self.path} has lost entries")
        return stored
