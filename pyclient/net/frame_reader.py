"""Cuts a byte stream into frames. Sans-IO: it says where the next bytes go, and is told how many.

Small frames are copied out of the receive buffer, which all connections share; a frame that
does not fit gets a buffer of its own, and its remaining bytes are received straight into it.
Either way a frame owns its bytes: views of it stay valid for as long as anyone holds them.
"""

from typing import Final

from pyclient.errors import InvalidReceiveError
from pyclient.protocol.frame import LENGTH

# Memory for a frame is committed in steps, as its bytes arrive: a peer that announces a large
# frame and sends none of it costs no more than the first step.
_FIRST_STEP_BYTES: Final = 1 << 22
_HTTP_HEAD: Final = int.from_bytes(b"HTTP", "big")
_TLS_ALERT_HEAD: Final = 0x1503  # an alert record of TLS 1.x; its minor version follows


class FrameReader:
    """The frames of one connection. Touched by the I/O thread only."""

    __slots__ = ("_filled", "_frame", "_head", "_length", "_limit_bytes", "_view", "frames")

    def __init__(self, limit_bytes: int) -> None:
        self.frames: list[memoryview] = []
        self._limit_bytes = limit_bytes
        self._head = b""  # up to three bytes of a length that has not arrived in full
        self._frame: bytearray | None = None
        self._view = memoryview(b"")
        self._filled = 0
        self._length = 0

    def target(self, scratch: memoryview) -> memoryview:
        """Where to receive the next bytes: in `scratch`, or in the frame under construction."""
        if self._frame is not None:
            return self._view[self._filled :]
        if self._head:
            scratch[: len(self._head)] = self._head
            return scratch[len(self._head) :]
        return scratch

    def received(self, scratch: memoryview, count: int) -> None:
        """Take `count` bytes that were put where `target` said; complete frames go to `frames`.

        Raises:
            InvalidReceiveError: a length is negative or above the limit. The stream is unusable.
        """
        if self._frame is not None:
            self._continue_frame(count)
            return
        end = len(self._head) + count
        position = 0
        while end - position >= LENGTH.size:
            length = self._checked_length(LENGTH.unpack_from(scratch, position)[0])
            position += LENGTH.size
            if end - position < length:
                self._begin_frame(length, scratch[position:end])
                position = end
                break
            self.frames.append(memoryview(bytes(scratch[position : position + length])))
            position += length
        self._head = bytes(scratch[position:end])

    def _begin_frame(self, length: int, first_bytes: memoryview) -> None:
        self._frame = bytearray(min(length, max(_FIRST_STEP_BYTES, 2 * len(first_bytes))))
        self._view = memoryview(self._frame)
        self._view[: len(first_bytes)] = first_bytes
        self._filled = len(first_bytes)
        self._length = length

    def _continue_frame(self, count: int) -> None:
        assert self._frame is not None
        self._filled += count
        if self._filled == self._length:
            self.frames.append(self._view)
            self._frame = None
        elif self._filled == len(self._frame):
            larger = bytearray(min(2 * self._filled, self._length))
            larger[: self._filled] = self._frame
            self._frame = larger
            self._view = memoryview(larger)

    def _checked_length(self, length: int) -> int:
        if 0 <= length <= self._limit_bytes:
            return length
        raise invalid_length(length, self._limit_bytes)


def invalid_length(length: int, limit_bytes: int) -> InvalidReceiveError:
    """The error for a frame of that length; says what the other side may be."""
    if length == _HTTP_HEAD:
        return InvalidReceiveError(
            "the other side answers in HTTP: this is a web server, not a Kafka broker"
        )
    if length >> 16 == _TLS_ALERT_HEAD:
        return InvalidReceiveError(
            "the other side answers in TLS: this listener needs security_protocol SSL"
        )
    return InvalidReceiveError(
        f"the other side announces a frame of {length} bytes, but only 0 to"
        f" {limit_bytes} (receive.message.max.bytes) are allowed:"
        " it may not be a Kafka broker"
    )
