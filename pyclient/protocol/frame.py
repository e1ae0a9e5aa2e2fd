"""Frames: a four-byte length, a header, a message. Written as parts, never joined."""

import struct
from typing import Final

from pyclient.errors import ProtocolError
from pyclient.protocol.header import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from pyclient.protocol.primitives import Buffer, Part, part_length
from pyclient.protocol.schema import Message

LENGTH: Final = struct.Struct(">i")


def request_frame(
    request: Message, version: int, correlation_id: int, client_id: str | None
) -> list[Part]:
    """A request with its header and length, ready to be written."""
    if request.api_key is None:
        raise ProtocolError(f"{type(request).__name__} is not a request")
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    head = header.encode_bytes(request_header_version(type(request), version))
    return _framed(head, request.encode(version))


def response_frame(response: Message, version: int, correlation_id: int) -> list[Part]:
    """A response with its header and length, ready to be written."""
    header = ResponseHeader(correlation_id=correlation_id)
    head = header.encode_bytes(response_header_version(type(response), version))
    return _framed(head, response.encode(version))


def _framed(head: bytes, parts: list[Part]) -> list[Part]:
    length = len(head) + sum(map(part_length, parts))
    # A message's first part is always plain bytes: the fields before any records.
    parts[0] = LENGTH.pack(length) + head + parts[0]  # type: ignore[operator]
    return parts


def frame_length(buffer: Buffer, position: int, limit: int) -> int | None:
    """The length of the frame at `position`; None until its four bytes are there.

    Raises:
        ProtocolError: it is negative or above `limit`, so no buffer may be allocated for it.
    """
    if len(buffer) - position < LENGTH.size:
        return None
    (length,) = LENGTH.unpack_from(buffer, position)
    if not 0 <= length <= limit:
        raise ProtocolError(f"a frame of {length} bytes, at most {limit} are allowed")
    return int(length)
