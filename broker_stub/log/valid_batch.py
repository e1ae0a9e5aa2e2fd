"""Whether the bytes at a place in a segment are a whole batch: what recovery asks. No state."""

import zlib
from typing import Final

from broker_stub.log.batch_header import CHECKSUM_FROM, MAGIC, BatchHeader, read_header
from broker_stub.log.file_slice import read_exactly
from broker_stub.log.open_files import OpenFile
from pyclient import _twin
from pyclient.errors import KafkaStorageError
from pyclient.records.batch import HEADER_SIZE

_MAGIC_AT: Final = 16
_LEGACY_CHECKSUM_AT: Final = 12
_LEGACY_CHECKSUM_FROM: Final = 16


def valid_batch(file: OpenFile, position: int, end: int, next_offset: int) -> BatchHeader | None:
    """The header of the batch at `position`, if it is whole and follows what is before it.

    Raises:
        KafkaStorageError: the batch is whole, but of a format that is not read here.
    """
    if end - position < HEADER_SIZE:
        return None
    header = read_header(read_exactly(file, position, HEADER_SIZE))
    if not HEADER_SIZE <= header.size <= end - position:
        return None
    batch = memoryview(read_exactly(file, position, header.size))
    if header.magic != MAGIC:
        if zlib.crc32(batch[_LEGACY_CHECKSUM_FROM:]) == int.from_bytes(
            batch[_LEGACY_CHECKSUM_AT:_LEGACY_CHECKSUM_FROM], "big"
        ):
            raise KafkaStorageError(
                f"offset {header.base_offset} is of message format {header.magic}, which Kafka"
                " wrote before 0.11; it is not read here"
            )
        return None
    if header.base_offset < next_offset or header.last_offset_delta < 0:
        return None
    if _twin.crc32c(batch[CHECKSUM_FROM:]) != header.checksum:
        return None
    return header


def has_batch_behind(file: OpenFile, position: int, end: int, next_offset: int) -> bool:
    """Whether a whole batch lies anywhere behind a damaged one: then it is not a torn tail."""
    data = read_exactly(file, position, end - position)
    at = data.find(MAGIC, _MAGIC_AT + 1)
    while at >= 0:
        start = position + at - _MAGIC_AT
        if valid_batch(file, start, end, next_offset) is not None:
            return True
        at = data.find(MAGIC, at + 1)
    return False
