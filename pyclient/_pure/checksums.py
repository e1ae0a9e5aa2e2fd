"""CRC-32C of batches, Java's murmur2, and the partition of a key."""

import struct
from collections.abc import Iterable

import google_crc32c

Buffer = bytes | bytearray | memoryview


def crc32c(data: Buffer) -> int:
    """The CRC-32C of bytes-like `data`."""
    checksum: int = google_crc32c.value(data if isinstance(data, bytes) else bytes(data))
    return checksum


def crc32c_of_parts(parts: Iterable[Buffer]) -> int:
    """The CRC-32C of several pieces, as if they were joined."""
    checksum = 0
    for part in parts:
        checksum = google_crc32c.extend(checksum, bytes(part))
    return checksum


def murmur2(key: Buffer) -> int:
    """Java's murmur2 of a key: signed, as its partitioner computes it."""
    h = _murmur2(key)
    return h - 0x1_0000_0000 if h & 0x8000_0000 else h


def partition_for_key(key: Buffer, partition_count: int) -> int:
    """The partition of a key, over all partitions, those without a leader included."""
    # Java drops the sign bit rather than taking the absolute value.
    return (_murmur2(key) & 0x7FFF_FFFF) % partition_count


def _murmur2(key: Buffer) -> int:
    size = len(key)
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ size
    whole = size & ~3
    for k in struct.unpack_from(f"<{size >> 2}I", key):
        k = k * m & mask
        h = (h * m ^ (k ^ k >> 24) * m) & mask
    if size != whole:
        h = (h ^ int.from_bytes(key[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15
