"""Varints of record fields for the pure twin: cached for the builder, bounded for the decoder."""

from typing import Final

from pyclient.varint import decode_uvarint, encode_varint

_KEPT: Final = 1 << 14


class _Varints(dict[int, bytes]):
    """Encoded varints by value. Caches small ones: lengths and deltas repeat.

    A lookup takes less than half as long as `encode_varint`, and a record needs five or more.
    """

    def __missing__(self, value: int) -> bytes:
        encoded = encode_varint(value)
        if -_KEPT < value < _KEPT:
            self[value] = encoded
        return encoded


VARINTS: Final = _Varints()


def read_varint(data: bytes, position: int, end: int, max_bytes: int) -> tuple[int, int]:
    """The varint at `position`, still zig-zag encoded, and the position behind it.

    Raises:
        ValueError: it does not end before `end`, or has more bits than its type.
    """
    try:
        value, position = decode_uvarint(data, position, 64 if max_bytes == 10 else 32)
    except (IndexError, ValueError):
        position = end + 1
    if position > end:
        raise ValueError("it has a number that is no varint")
    return value, position


def decode_varint(data: bytes, position: int, end: int, max_bytes: int) -> tuple[int, int]:
    """The varint at `position`, and the position behind it; raises as `read_varint`."""
    value, position = read_varint(data, position, end, max_bytes)
    return (value >> 1) ^ -(value & 1), position
