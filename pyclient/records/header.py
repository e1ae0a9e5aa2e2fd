"""The layout of the 61-byte header of a v2 record batch: its fields, offsets and attribute bits.

Client and broker both use it; only the native twin has its own. A leaf, without state.
"""

import struct
from collections.abc import Callable
from typing import Final, TypeAlias

# Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base timestamp,
# max timestamp, producer id, producer epoch, base sequence, record count.
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size

LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
MAX_TIMESTAMP_AT: Final = 35

CRC_FROM: Final = ATTRIBUTES_AT
"""The CRC covers the bytes from here to the end of the batch."""
LOG_OVERHEAD: Final = LEADER_EPOCH_AT
"""Base offset and length: the bytes that the length does not count."""

MAGIC: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

HeaderFields: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]

unpack_header: Final[Callable[[bytes | bytearray | memoryview, int], HeaderFields]] = (
    HEADER.unpack_from
)
"""The fields of the header at a position, as a plain tuple."""
