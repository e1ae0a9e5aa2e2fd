"""Checks whether the bytes at a position of a segment are a whole, undamaged batch.

Used by recovery and by index rebuilds, off the serving thread. The caller owns the checker.
"""

import zlib
from collections.abc import Iterator
from typing import Final

from broker_stub.log.batch.header import BatchHeader, read_header
from broker_stub.log.files.file_slice import read_exactly
from broker_stub.log.files.open_files import OpenFile
from broker_stub.log.log_config import INT64_MAX
from pyclient import _twin
from pyclient.errors import KafkaStorageError
from pyclient.records.header import CRC_FROM, HEADER_SIZE, LENGTH_AT, LOG_OVERHEAD, MAGIC, MAGIC_AT

_READ_BYTES: Final = 64 << 10
_SEARCHED_BYTES: Final = 1 << 20  # at a time
# A message of before Kafka 0.11: its CRC is at byte 12 and covers everything from the magic on.
_OLD_SIZE_MIN: Final = 26
_OLD_CRC_AT: Final = 12


class BatchChecker:
    """Checks the batches of a segment. Reads small ones many at a time."""

    __slots__ = ("_block", "_block_start", "_end", "_file", "_offset_max")

    def __init__(self, file: OpenFile, end: int, offset_max: int = INT64_MAX) -> None:
        """Check the first `end` bytes of a file, where no offset may exceed `offset_max`."""
        self._file = file
        self._end = end
        self._offset_max = offset_max
        self._block = memoryview(b"")
        self._block_start = 0

    def batch_at(self, position: int, next_offset: int) -> BatchHeader | None:
        """The header of the batch at `position`, if it is whole and may start at `next_offset`.

        The checksum does not cover the base offset, and compaction leaves gaps. So a batch with a
        higher base offset is accepted unless the next whole batch contradicts it.

        Raises:
            KafkaStorageError: the batch is whole, but of an old format.
        """
        header = self._whole_at(position, next_offset)
        if header is None or header.base_offset == next_offset:
            return header
        end = position + header.size
        behind = self._whole_at(end, next_offset)
        if behind is None:
            _, behind = next(self._whole_behind(end, next_offset), (end, None))
        return header if behind is None or behind.base_offset > header.last_offset else None

    def _whole_at(self, position: int, next_offset: int) -> BatchHeader | None:
        left = self._end - position
        if left < HEADER_SIZE or self._bytes(position, HEADER_SIZE)[MAGIC_AT] != MAGIC:
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
        return header if _twin.crc32c(batch[CRC_FROM:]) == header.checksum else None

    def batch_behind(self, position: int, next_offset: int) -> int | None:
        """The position of the first whole batch behind a damaged one; None if there is none."""
        told = self._told_end(position)
        if told is not None and self.batch_at(told, next_offset) is not None:
            return told  # else a batch inside the damaged batch's records could be found first
        for start, header in self._whole_behind(position + 1, next_offset):
            if header == self.batch_at(start, next_offset):
                return start
        return None

    def _told_end(self, position: int) -> int | None:
        """Where the batch at `position` ends according to its header, if that is possible."""
        if self._end - position < HEADER_SIZE:
            return None
        size = read_header(self._bytes(position, HEADER_SIZE)).size
        return position + size if HEADER_SIZE <= size < self._end - position else None

    def _whole_behind(self, start: int, next_offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Whole batches from `start` on, at any position."""
        while start + HEADER_SIZE <= self._end:
            magic_at = start + MAGIC_AT
            data = read_exactly(self._file, magic_at, min(_SEARCHED_BYTES, self._end - magic_at))
            at = data.find(MAGIC)
            while at >= 0:
                header = self._whole_at(start + at, next_offset)
                if header is not None:
                    yield start + at, header
                at = data.find(MAGIC, at + 1)
            start += len(data)

    def _bytes(self, position: int, size: int) -> memoryview:
        start = position - self._block_start
        if start < 0 or start + size > len(self._block):
            wanted = min(max(size, _READ_BYTES), self._end - position)
            self._block = memoryview(read_exactly(self._file, position, wanted))
            self._block_start, start = position, 0
        return self._block[start : start + size]


def refuse_old_format(file: OpenFile, position: int, end: int) -> None:
    """Refuse a message in a format from before Kafka 0.11.

    Raises:
        KafkaStorageError: there is one at `position`.
    """
    left = end - position
    if left < _OLD_SIZE_MIN:
        return
    head = read_exactly(file, position, _OLD_SIZE_MIN)
    magic = head[MAGIC_AT]
    size = int.from_bytes(head[LENGTH_AT:_OLD_CRC_AT], "big") + LOG_OVERHEAD
    if magic >= MAGIC or not _OLD_SIZE_MIN <= size <= left:
        return
    message = memoryview(read_exactly(file, position, size))
    if zlib.crc32(message[MAGIC_AT:]) == int.from_bytes(message[_OLD_CRC_AT:MAGIC_AT], "big"):
        offset = int.from_bytes(message[:8], "big")
        raise KafkaStorageError(
            f"the record at offset {offset} has message format {magic}, from before Kafka 0.11;"
            " only format 2 is supported"
        )
