"""What both hand-written parsers need: the header of a request, and what breaks off a parse."""

from __future__ import annotations

import struct
from typing import Final

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
UUID_SIZE: Final = 16

_CLIENT_ID_AT: Final = 8  # behind API key, version and correlation id
_FIXED: Final = 10
NULL: Final = -1


class Unfamiliar(Exception):
    """The request has something that is left to the ordinary way."""


# What parsing raises where the bytes are not as they should be, or end too early.
UNREADABLE: Final = (Unfamiliar, IndexError, ValueError, struct.error)


def body_position(frame: memoryview, *, flexible: bool) -> int:
    """Where the body of a request starts.

    Raises:
        Unfamiliar: the header has tagged fields.
        ValueError: the client's id is not a text.
    """
    (length,) = INT16.unpack_from(frame, _CLIENT_ID_AT)
    if length < NULL:
        raise Unfamiliar
    position: int = _FIXED + max(length, 0)
    str(frame[_FIXED:position], "utf-8")
    if flexible:
        if frame[position]:
            raise Unfamiliar
        position += 1
    return position


def uvarint(frame: memoryview, position: int) -> tuple[int, int]:
    """An unsigned variable-length integer of at most 28 bits, and the position behind it."""
    byte = frame[position]
    position += 1
    if byte < 0x80:
        return byte, position
    value = byte & 0x7F
    for shift in (7, 14, 21):
        byte = frame[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise Unfamiliar


def string(frame: memoryview, position: int) -> tuple[str, int]:
    """A string with a length in front, and the position behind it; null is unfamiliar."""
    (length,) = INT16.unpack_from(frame, position)
    start = position + INT16.size
    end = start + length
    if length < 0 or end > len(frame):
        raise Unfamiliar
    return str(frame[start:end], "utf-8"), end


def compact_string(frame: memoryview, position: int) -> tuple[str, int]:
    """The same in flexible versions."""
    length, start = uvarint(frame, position)
    end = start + length - 1
    if not length or end > len(frame):
        raise Unfamiliar
    return str(frame[start:end], "utf-8"), end
