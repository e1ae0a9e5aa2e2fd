"""Zig-zag varints, as records are full of them. Shared by the builder and the decoder."""

from typing import Final

_KEPT: Final = 1 << 14


def encode_varint(value: int) -> bytes:
    """The zig-zag varint of `value`, which wraps at 64 bits as Java's does."""
    if value >> 63 == 1:
        value -= 1 << 64
    rest = value << 1 if value >= 0 else (~value << 1) | 1
    if rest < 0x80:
        return bytes((rest,))
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


class _Varints(dict[int, bytes]):
    """Varints by value, remembered where they are likely to come again: lengths and deltas."""

    def __missing__(self, value: int) -> bytes:
        encoded = encode_varint(value)
        if -_KEPT < value < _KEPT:
            self[value] = encoded
        return encoded


VARINTS: Final = _Varints()


def read_varint(data: bytes, position: int, end: int, max_bytes: int) -> tuple[int, int]:
    """The varint at `position`, still zig-zag, and the position behind it.

    Raises:
        ValueError: it does not end before `end`, or has more bits than its type.
    """
    value = shift = 0
    for at in range(position, min(end, position + max_bytes)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> (64 if max_bytes == 10 else 32):
                break
            return value, at + 1
        shift += 7
    raise ValueError("it has a number that is no varint")


def decode_varint(data: bytes, position: int, end: int, max_bytes: int) -> tuple[int, int]:
    """The varint at `position`, and the position behind it.

    Raises:
        ValueError: it does not end before `end`, or has more bits than its type.
    """
    value, position = read_varint(data, position, end, max_bytes)
    return (value >> 1) ^ -(value & 1), position
