"""librdkafka's partitioners: which partition a key belongs to."""

import zlib
from collections.abc import Callable

from pyclient.entropy import Entropy
from pyclient.partitioner.default import murmur2 as _murmur2

Partitioner = Callable[[bytes | None, int], int | None]
"""From the key and the number of partitions to one of them; None leaves it to the producer."""

_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193


def consistent(key: bytes | None, partition_count: int) -> int:
    """By the key's CRC-32; all messages without a key go to one partition."""
    return zlib.crc32(key or b"") % partition_count


def murmur2(key: bytes | None, partition_count: int) -> int:
    """By the key's murmur2 hash, as Java's client does it."""
    return (_murmur2(key or b"") & 0x7FFFFFFF) % partition_count


def fnv1a(key: bytes | None, partition_count: int) -> int:
    """By the key's FNV-1a hash."""
    hashed = _FNV_OFFSET
    for byte in key or b"":
        hashed = (hashed ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    # librdkafka takes the absolute value of the signed number.
    signed = hashed - (1 << 32) if hashed & 0x80000000 else hashed
    return abs(signed) % partition_count


_BY_HASH = {"consistent": consistent, "murmur2": murmur2, "fnv1a": fnv1a}


def partitioner(name: str, entropy: Entropy) -> Partitioner | None:
    """librdkafka's partitioner of this name; None if there is none.

    Without a key, `random` and its variants leave the choice to the producer: its sticky
    partitioning spreads as evenly and makes larger batches.
    """
    if name in _BY_HASH:
        return _BY_HASH[name]
    of_key = _BY_HASH.get(name.removesuffix("_random"))
    if of_key is None and name != "random":
        return None

    def partition(key: bytes | None, partition_count: int) -> int | None:
        if key is None:
            return None
        if key and of_key is not None:
            return of_key(key, partition_count)
        return entropy.below(partition_count)

    return partition
