"""The 61 bytes in front of every record batch: all that the log ever looks at.

The base offset and the leader epoch lie before byte 21, where the checksum starts, so the broker
assigns both in place. No state; any thread.
"""

import struct
from typing import Final, NamedTuple

from pyclient.records.batch import HEADER, LOG_OVERHEAD

MAGIC: Final = 2
CHECKSUM_FROM: Final = 21
NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1

CODEC_MASK: Final = 0x07
CODEC_MAX: Final = 4
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20

unpack_header = HEADER.unpack_from
put_base_offset = struct.Struct(">q").pack_into
"""Write the base offset at a batch's first byte."""

_new_tuple = tuple.__new__  # what _make does, without its call
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")
_INT64 = struct.Struct(">q")


class BatchHeader(NamedTuple):
    """The header's fields, under Kafka's names."""

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
        """The offset of the last record, whether compaction kept it or not."""
        return self.base_offset + self.last_offset_delta

    @property
    def is_control(self) -> bool:
        """Whether the batch ends a transaction, and holds no record for readers."""
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at `position`; the caller has made sure that 61 bytes are there."""
    return _new_tuple(BatchHeader, unpack_header(buffer, position))


def put_leader_epoch(buffer: bytearray | memoryview, position: int, leader_epoch: int) -> None:
    """Write the leader epoch of the batch at `position`."""
    _INT32.pack_into(buffer, position + 12, leader_epoch)


def put_append_time(
    buffer: bytearray | memoryview, position: int, attributes: int, timestamp_ms: int
) -> None:
    """Stamp the batch with the time of its append. The checksum is wrong until renewed."""
    _INT16.pack_into(buffer, position + 21, attributes | LOG_APPEND_TIME)
    _INT64.pack_into(buffer, position + 35, timestamp_ms)


def put_max_timestamp(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    """Write the latest timestamp of the batch's records. The checksum is wrong until renewed."""
    _INT64.pack_into(buffer, position + 35, timestamp_ms)


def put_checksum(buffer: bytearray | memoryview, position: int, checksum: int) -> None:
    """Write the checksum of the batch at `position`."""
    _UINT32.pack_into(buffer, position + 17, checksum)
