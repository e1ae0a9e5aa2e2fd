"""The last offset of every key in a range of a log, with bounded memory, for compaction.

A hash table with open addressing over 128-bit murmur3 digests, and the keys themselves, each once:
equal digests are confirmed by comparing keys, so crafted keys cannot replace other records. Both
parts count towards the limit. A full map takes no new key, and compaction continues from there in
another round. Background thread only.
"""

import struct
from collections.abc import Callable
from typing import Final

import mmh3

NO_OFFSET: Final = -1

_SLOT: Final = struct.Struct("<16sqq")  # digest, offset, where the key is
_LENGTH: Final = struct.Struct("<i")
_FIRST_SLOTS: Final = 1024  # a power of two, as all sizes of the table

Digest = Callable[[bytes], bytes]


class OffsetMap:
    """Keys and their last offsets.

    Attributes:
        latest_offset: the last offset that the map covers; -1 if it is empty.
    """

    __slots__ = ("_count", "_digest", "_keys", "_limit_bytes", "_mask", "_table", "latest_offset")

    def __init__(self, limit_bytes: int, digest: Digest = mmh3.hash_bytes) -> None:
        self.latest_offset = NO_OFFSET
        self._limit_bytes = limit_bytes
        self._digest = digest
        self._count = 0
        self._mask = _FIRST_SLOTS - 1
        self._table = bytearray(_FIRST_SLOTS * _SLOT.size)
        self._keys = bytearray(1)  # position 0 means no key

    def __len__(self) -> int:
        return self._count

    def put(self, key: bytes, offset: int) -> bool:
        """Set a key's offset; returns False if there is no room for a new key."""
        digest = self._digest(key)
        slot, found, position = self._find(digest, key)
        if found == NO_OFFSET:
            if not self._has_room_for(key):
                return False
            if self._is_crowded():
                self._grow()
                slot, _, _ = self._find(digest, key)
            position = len(self._keys)
            self._keys += _LENGTH.pack(len(key))
            self._keys += key
            self._count += 1
        _SLOT.pack_into(self._table, slot * _SLOT.size, digest, offset, position)
        return True

    def get(self, key: bytes) -> int:
        """The last offset of a key; -1 if it is not in the map."""
        return self._find(self._digest(key), key)[1]

    def _find(self, digest: bytes, key: bytes) -> tuple[int, int, int]:
        """The slot, offset and position of a key, or the free slot where it would go."""
        table, mask, unpack, size = self._table, self._mask, _SLOT.unpack_from, _SLOT.size
        slot = int.from_bytes(digest[:8], "little") & mask
        while True:
            other, offset, position = unpack(table, slot * size)
            if position == 0:
                return slot, NO_OFFSET, 0
            if other == digest and self._key_at(position) == key:
                return slot, offset, position
            slot = (slot + 1) & mask

    def _key_at(self, position: int) -> bytearray:
        start = position + _LENGTH.size
        (length,) = _LENGTH.unpack_from(self._keys, position)
        return self._keys[start : start + length]

    def _is_crowded(self) -> bool:
        return self._count * 4 >= (self._mask + 1) * 3

    def _has_room_for(self, key: bytes) -> bool:
        table_bytes = len(self._table) * (2 if self._is_crowded() else 1)
        needed = table_bytes + len(self._keys) + _LENGTH.size + len(key)
        return self._count == 0 or needed <= self._limit_bytes  # one always fits

    def _grow(self) -> None:
        old, self._mask = self._table, self._mask * 2 + 1
        self._table = table = bytearray(2 * len(old))
        mask, size = self._mask, _SLOT.size
        for digest, offset, position in _SLOT.iter_unpack(old):
            if position:
                slot = int.from_bytes(digest[:8], "little") & mask
                while any(table[slot * size + 24 : slot * size + 32]):
                    slot = (slot + 1) & mask
                _SLOT.pack_into(table, slot * size, digest, offset, position)
