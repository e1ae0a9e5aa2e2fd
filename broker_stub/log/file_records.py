"""The `.log` file of a segment: writes batches at its end and walks over their headers.

Kafka's FileRecords. It knows nothing of indexes. Guarded by the lock of its log, except that the
background thread may walk without it: the bytes before `size` never change.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from broker_stub.log.batch.header import NO_TIMESTAMP, BatchHeader, read_header
from broker_stub.log.files.file_slice import read_exactly
from broker_stub.log.files.open_files import OpenFile, OpenFiles
from pyclient.errors import CorruptRecordError, KafkaStorageError
from pyclient.records.header import HEADER_SIZE, MAGIC

# Bytes per read of a walk: about the distance between two index entries.
_WALK_BYTES: Final = 8192


class FileRecords:
    """Batches back to back in one file, which is opened when it is needed.

    Attributes:
        path: the file; a rename changes it.
        base_offset: the offset in the file's name.
        size: the number of valid bytes. A failed write may leave more in the file.
    """

    __slots__ = ("_files", "_first_timestamp", "_torn", "base_offset", "path", "size")

    def __init__(self, path: str, base_offset: int, size: int, files: OpenFiles) -> None:
        self.path = path
        self.base_offset = base_offset
        self.size = size
        self._files = files
        self._torn = False
        self._first_timestamp: int | None = None

    def file(self) -> OpenFile:
        """The file, opened at least for reading.

        Raises:
            KafkaStorageError: it cannot be opened.
        """
        try:
            return self._files.reader(self.path)
        except OSError as error:
            raise KafkaStorageError(f"cannot open {self.path}: {error}") from error

    # --- writing -----------------------------------------------------------------------------

    def append(self, batches: memoryview) -> None:
        """Write the batches with one system call, if the kernel takes them all at once.

        Raises:
            KafkaStorageError: the disk refused; `size` is unchanged.
        """
        try:
            descriptor = self._files.writer(self.path).fd
            if self._torn:
                os.ftruncate(descriptor, self.size)
                self._torn = False
            written = os.pwrite(descriptor, batches, self.size)
            while written < len(batches):
                written += os.pwrite(descriptor, batches[written:], self.size + written)
        except OSError as error:
            self._torn = True
            with contextlib.suppress(OSError):  # the next append or recovery cuts the tail off
                self.cut_torn_tail()
            raise KafkaStorageError(f"cannot append to {self.path}: {error}") from error
        self.size += written

    def cut_torn_tail(self) -> None:
        """Cut off what a failed append left behind `size`, if anything.

        Raises:
            OSError: the disk refused.
        """
        if self._torn:
            os.truncate(self.path, self.size)
            self._torn = False

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes; the caller updates the indexes."""
        os.truncate(self.path, size)
        self.size = size
        self._first_timestamp = None

    # --- reading -----------------------------------------------------------------------------

    def walk(self, position: int, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Batch headers with their positions, starting at `position`.

        Raises:
            CorruptRecordError: there is no valid header at a batch boundary.
            KafkaStorageError: the file cannot be read.
        """
        end = self.size if end is None else end
        if position >= end:
            return
        file = self.file()
        block, block_start = b"", position
        while position < end:
            if position + HEADER_SIZE > block_start + len(block):
                block_start = position
                block = read_exactly(file, position, min(_WALK_BYTES, self.size - position))
            if len(block) < HEADER_SIZE:
                raise CorruptRecordError("the segment ends inside a batch", position=position)
            header = read_header(block, position - block_start)
            size = header.size
            if not HEADER_SIZE <= size <= self.size - position or header.magic != MAGIC:
                raise CorruptRecordError(
                    f"{self.path} has no batch at byte {position}", position=position
                )
            yield position, header
            position += size

    @property
    def first_timestamp(self) -> int:
        """The first batch's timestamp; -1 if it has none, is damaged, or the file is empty."""
        if self._first_timestamp is None and self.size:
            try:
                self._first_timestamp = self.read_first_timestamp()
            except CorruptRecordError:
                self._first_timestamp = NO_TIMESTAMP
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    def read_first_timestamp(self) -> int:
        """The first batch's timestamp, read from the file; -1 if it has none or the file is empty.

        Raises:
            CorruptRecordError: the first batch is damaged.
        """
        first = next(self.walk(0), None)
        return NO_TIMESTAMP if first is None else first[1].max_timestamp
