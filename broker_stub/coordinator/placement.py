"""Which partition of its coordinator's topic holds an id. Pure functions."""

import struct
from functools import lru_cache


@lru_cache(maxsize=4096)
def partition_for(name: str, partition_count: int) -> int:
    """The partition of a group or transactional id: Java's hash, made positive."""
    units = struct.iter_unpack("<H", name.encode("utf-16-le", "surrogatepass"))
    hash_code = 0
    for (unit,) in units:
        hash_code = (31 * hash_code + unit) & 0xFFFFFFFF
    signed = hash_code - (1 << 32) if hash_code >= 1 << 31 else hash_code
    # Java's abs of the least integer is negative; Kafka takes 0 for it.
    return 0 if signed == -(1 << 31) else abs(signed) % partition_count
