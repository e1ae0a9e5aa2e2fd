"""The header of a record batch as the log uses it: read as a tuple, patched in place.

The base offset and the leader epoch lie before the bytes that the CRC covers, so the broker can
assign both in place. The layout is `pyclient.records.header`. No state; any thread.
"""

import struct
from typing import Final, NamedTuple

from pyclient.records.header import (
    ATTRIBUTES_AT,
    CONTROL,
    CRC_AT,
    LEADER_EPOCH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAX_TIMESTAMP_AT,
    TRANSACTIONAL,
    unpack_header,
)

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
CODEC_MAX: Final = 4

put_base_offset = struct.Struct(">q").pack_into
"""Write the base offset; it is the first field of a batch."""

_new_tuple = tuple.__new__  # what _make does, without its call
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")
_INT64 = struct.Struct(">q")


class BatchHeader(NamedTuple):
    """The fields of the header, under Kafka's names."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    checksum: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """The bytes of the whole batch."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """The offset of the last record, even if compaction removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a control record, such as a transaction marker."""
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at `position`, where the buffer must have at least HEADER_SIZE bytes."""
    return _new_tuple(BatchHeader, unpack_header(buffer, position))


def put_leader_epoch(buffer: bytearray | memoryview, position: int, leader_epoch: int) -> None:
    """Write the leader epoch of the batch at `position`."""
    _INT32.pack_into(buffer, position + LEADER_EPOCH_AT, leader_epoch)


def put_append_time(
    buffer: bytearray | memoryview, position: int, attributes: int, timestamp_ms: int
) -> None:
    """Set LogAppendTime and the timestamp. The caller has to update the checksum."""
    _INT16.pack_into(buffer, position + ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    put_max_timestamp(buffer, position, timestamp_ms)


def put_max_timestamp(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    """Write the latest timestamp of the records. The caller has to update the checksum."""
    _INT64.pack_into(buffer, position + MAX_TIMESTAMP_AT, timestamp_ms)


def put_checksum(buffer: bytearray | memoryview, position: int, checksum: int) -> None:
    """Write the checksum of the batch at `position`."""
    _UINT32.pack_into(buffer, position + CRC_AT, checksum)
