"""The wire pieces that the data paths share: headers, strings, topics.

Pure functions over bytes.
"""

import struct
from typing import Final

from pyclient.protocol.primitives import ZERO_UUID, Uuid
from pyclient.varint import decode_uvarint, encode_uvarint

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
_UUID_SIZE: Final = 16

_CLIENT_ID_AT: Final = 8  # behind API key, version and correlation id
_FIXED: Final = 10
NULL: Final = -1


class Unfamiliar(Exception):
    """The request has something that is left to the codec."""


# What parsing raises where bytes are malformed, or end too early.
UNREADABLE: Final = (Unfamiliar, IndexError, ValueError, struct.error)


def body_position(frame: memoryview, *, flexible: bool) -> int:
    """Where the body of a request starts.

    Raises:
        Unfamiliar: the header has tagged fields.
        ValueError: the client id is not UTF-8.
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
    length, start = decode_uvarint(frame, position)
    end = start + length - 1
    if not length or end > len(frame):
        raise Unfamiliar
    return str(frame[start:end], "utf-8"), end


def topic_head(frame: memoryview, position: int) -> tuple[str, int, int]:
    """A topic's name, the number of its partitions, and the position of the first."""
    name, position = string(frame, position)
    (count,) = INT32.unpack_from(frame, position)
    if count < 0:
        raise Unfamiliar
    return name, count, position + INT32.size


def compact_topic_head(
    frame: memoryview, position: int, *, by_id: bool
) -> tuple[str, Uuid, int, int]:
    """The same in flexible versions, where a topic has a name or an id."""
    name, topic_id = "", ZERO_UUID
    if by_id:
        topic_id = bytes(frame[position : position + _UUID_SIZE])
        position += _UUID_SIZE
    else:
        name, position = compact_string(frame, position)
    count, position = decode_uvarint(frame, position)
    if not count:
        raise Unfamiliar
    return name, topic_id, count - 1, position


def pack_topic_head(name: str, count: int) -> bytes:
    """The inverse of `topic_head`."""
    text = name.encode()
    return INT16.pack(len(text)) + text + INT32.pack(count)


def pack_compact_topic_head(name: str, topic_id: Uuid, count: int, *, by_id: bool) -> bytes:
    """The inverse of `compact_topic_head`."""
    if by_id:
        return topic_id + encode_uvarint(count + 1)
    text = name.encode()
    return encode_uvarint(len(text) + 1) + text + encode_uvarint(count + 1)
