"""A range of a segment file that is being sent to a reader.

The server sends it with sendfile; TLS and the simulation read it. It holds the open file, so it
stays valid when retention, compaction or the cache of open files drop that file. Any thread.
"""

import os

from broker_stub.log.files.open_files import OpenFile
from pyclient.errors import KafkaStorageError


class FileSlice:
    """Whole batches of one segment; later appends do not extend it."""

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
    """Read `size` bytes at `position`.

    Raises:
        KafkaStorageError: the file is too short, or cannot be read.
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
