"""A stretch of a segment on its way to a reader: file, position, length.

The server sends it with sendfile, TLS and simulation read it. It holds its open file, so it stays
valid whatever retention, compaction or the LRU of open files do meanwhile. Any thread.
"""

import os

from broker_stub.log.files.open_files import OpenFile
from pyclient.errors import KafkaStorageError


class FileSlice:
    """Whole batches of one segment; its end was fixed when it was made."""

    __slots__ = ("file", "nbytes", "position")

    def __init__(self, file: OpenFile, position: int, nbytes: int) -> None:
        self.file = file
        self.position = position
        self.nbytes = nbytes

    def __repr__(self) -> str:
        return f"FileSlice(fd={self.fd}, position={self.position}, nbytes={self.nbytes})"

    @property
    def fd(self) -> int:
        """The descriptor, for sendfile; open as long as the slice lives."""
        return self.file.fd

    def read(self) -> bytes:
        """The bytes.

        Raises:
            KafkaStorageError: the file ends before the slice does, or cannot be read.
        """
        return read_exactly(self.file, self.position, self.nbytes)


def read_exactly(file: OpenFile, position: int, size: int) -> bytes:
    """`size` bytes from `position` on.

    Raises:
        KafkaStorageError: the file ends before, or cannot be read.
    """
    try:
        data = os.pread(file.fd, size, position)
        while len(data) < size:  # the kernel hands out at most 2 GiB at a time
            more = os.pread(file.fd, size - len(data), position + len(data))
            if not more:
                raise KafkaStorageError(
                    f"a segment ends at byte {position + len(data)}, inside a batch"
                )
            data += more
    except OSError as error:
        raise KafkaStorageError(f"cannot read a segment: {error}") from error
    return data
