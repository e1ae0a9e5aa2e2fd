"""Whether the bytes at a place in a segment are a whole batch: what recovery asks.

Used before a log is served, off the serving thread.
"""

import zlib
from typing import Final

from broker_stub.log.batch_header import CHECKSUM_FROM, MAGIC, BatchHeader, read_header
from broker_stub.log.file_slice import read_exactly
from broker_stub.log.log_config import INT64_MAX
from broker_stub.log.open_files import OpenFile
from pyclient import _twin
from pyclient.errors import KafkaStorageError
from pyclient.records.batch import HEADER_SIZE, LOG_OVERHEAD

_READ_BYTES: Final = 64 << 10
_SEARCHED_BYTES: Final = 1 << 20  # at a time
_MAGIC_AT: Final = 16
# A message of before Kafka 0.11: its checksum, and what that covers, from the magic on.
_OLD_SIZE_MIN: Final = 26
_OLD_CHECKSUM_AT: Final = 12


class BatchChecker:
    """Looks at the batches of a segment. Small ones are read many at a time."""

    __slots__ = ("_block", "_block_start", "_end", "_file", "_offset_max")

    def __init__(self, file: OpenFile, end: int, offset_max: int = INT64_MAX) -> None:
        """Over the first `end` bytes of a file, where no batch has an offset past `offset_max`."""
        self._file = file
        self._end = end
        self._offset_max = offset_max
        self._block = memoryview(b"")
        self._block_start = 0

    def batch_at(self, position: int, next_offset: int) -> BatchHeader | None:
        """The header of the batch at `position`, if it is whole and follows what is before it.

        Raises:
            KafkaStorageError: the batch is whole, but of a format that is not read here.
        """
        left = self._end - position
        if left < HEADER_SIZE or self._bytes(position, HEADER_SIZE)[_MAGIC_AT] != MAGIC:
            refuse_old_format(self._file, position, self._end)
            return None
        header = read_header(self._bytes(position, HEADER_SIZE))
        if (
            not HEADER_SIZE <= header.size <= left
            or header.base_offset < next_offset
            or header.last_offset_delta < 0
            or header.last_offset > self._offset_max
        ):
            return None
        batch = self._bytes(position, header.size)
        return header if _twin.crc32c(batch[CHECKSUM_FROM:]) == header.checksum else None

    def batch_behind(self, position: int, next_offset: int) -> int | None:
        """Where the first whole batch behind a damaged one starts; None behind a torn tail."""
        start = position + 1
        while start + HEADER_SIZE <= self._end:
            magic_at = start + _MAGIC_AT
            data = read_exactly(self._file, magic_at, min(_SEARCHED_BYTES, self._end - magic_at))
            at = data.find(MAGIC)
            while at >= 0:
                if self.batch_at(start + at, next_offset) is not None:
                    return start + at
                at = data.find(MAGIC, at + 1)
            start += len(data)
        return None

    def _bytes(self, position: int, size: int) -> memoryview:
        start = position - self._block_start
        if start < 0 or start + size > len(self._block):
            wanted = min(max(size, _READ_BYTES), self._end - position)
            self._block = memoryview(read_exactly(self._file, position, wanted))
            self._block_start, start = position, 0
        return self._block[start : start + size]


def refuse_old_format(file: OpenFile, position: int, end: int) -> None:
    """Refuse a message that Kafka wrote before there were batches.

    Raises:
        KafkaStorageError: there is one.
    """
    left = end - position
    if left < _OLD_SIZE_MIN:
        return
    head = read_exactly(file, position, _OLD_SIZE_MIN)
    magic = head[_MAGIC_AT]
    size = int.from_bytes(head[8:_OLD_CHECKSUM_AT], "big") + LOG_OVERHEAD
    if magic >= MAGIC or not _OLD_SIZE_MIN <= size <= left:
        return
    message = memoryview(read_exactly(file, position, size))
    if zlib.crc32(message[_MAGIC_AT:]) == int.from_bytes(
        message[_OLD_CHECKSUM_AT:_MAGIC_AT], "big"
    ):
        offset = int.from_bytes(message[:8], "big")
        raise KafkaStorageError(
            f"offset {offset} is of message format {magic}, which Kafka wrote before 0.11; it is"
            " not read here"
        )
