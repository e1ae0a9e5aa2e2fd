"""The receive buffer of a connection: the socket writes into it, frames are views of it.

Nothing is copied between the socket and a handler. Between two turns an idle connection holds no
buffer, and one with the start of a frame a small one. Buffers of the usual size are pooled.
Serving thread only.
"""

from typing import Final

from pyclient.protocol.frame import LENGTH, frame_length

BUFFER_BYTES: Final = 1 << 20
# Up to this much is copied to a small buffer: else thousands of connections with one byte each
# would hold gigabytes.
_COPIED_UP_TO: Final = BUFFER_BYTES >> 4
_SPARE_MAX: Final = 8


class BufferPool:
    """Spare receive buffers, all of one size."""

    def __init__(self) -> None:
        self._spare: list[bytearray] = []

    def take(self) -> bytearray:
        """A buffer of the usual size."""
        return self._spare.pop() if self._spare else bytearray(BUFFER_BYTES)

    def give_back(self, buffer: bytearray) -> None:
        """Pool the buffer, if it is of the usual size."""
        if len(buffer) == BUFFER_BYTES and len(self._spare) < _SPARE_MAX:
            self._spare.append(buffer)


class ReceiveBuffer:
    """What was received on one connection and not handled yet.

    Frames are valid until the next call of any method.
    """

    __slots__ = ("_buffer", "_end", "_limit", "_pool", "_start", "_view")

    def __init__(self, pool: BufferPool, limit: int) -> None:
        """Refuse frames of more than `limit` bytes."""
        self._pool = pool
        self._limit = limit
        self._buffer: bytearray | None = None
        self._view = memoryview(b"")
        self._start = 0
        self._end = 0

    @property
    def has_room(self) -> bool:
        """Whether more can be received without making the buffer larger than usual."""
        if self._buffer is None or self._start > 0:
            return True
        return self._end < max(len(self._buffer), BUFFER_BYTES)

    def room(self) -> memoryview:
        """Where the socket may write next; call `received` or `release` afterwards.

        Grows the buffer only for a frame that needs it, to at most twice what was received: a
        length field alone, which costs its sender nothing, allocates nothing.
        """
        if self._buffer is None:
            self._adopt(self._pool.take())
        elif self._end == len(self._buffer) or self._needed() > len(self._buffer) - self._start:
            self._make_room()
        return self._view[self._end :]

    def received(self, count: int) -> None:
        """The socket wrote `count` bytes."""
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole frame, without its length; None until it is complete.

        Raises:
            ProtocolError: its length is negative or above the limit.
        """
        start = self._start
        available = self._end - start
        if available < LENGTH.size:
            return None
        length = frame_length(self._view, start, self._limit)
        if length is None or available - LENGTH.size < length:
            return None
        self._start = start + LENGTH.size + length
        return self._view[start + LENGTH.size : self._start]

    def release(self) -> None:
        """Give an empty buffer back; copy a little rest to a small one."""
        held = self._end - self._start
        if held == 0:
            self.discard()
        elif held <= _COPIED_UP_TO < len(self._view):
            rest = bytearray(self._view[self._start : self._end])
            self.discard()
            self._adopt(rest)
            self._end = held

    def discard(self) -> None:
        """Give the buffer back, and drop what is in it."""
        if self._buffer is not None:
            buffer = self._buffer
            self._buffer = None
            self._view = memoryview(b"")
            self._start = self._end = 0
            self._pool.give_back(buffer)

    def _adopt(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._view = memoryview(buffer)

    def _needed(self) -> int:
        """Bytes of the frame at the start, its length included; 0 while that is not known."""
        if self._end - self._start < LENGTH.size:
            return 0
        (length,) = LENGTH.unpack_from(self._view, self._start)
        return LENGTH.size + int(length)

    def _make_room(self) -> None:
        assert self._buffer is not None
        held = self._end - self._start
        capacity = len(self._buffer)
        needed = self._needed()
        larger: bytearray | None = None
        if capacity < BUFFER_BYTES:
            larger = self._pool.take()
        elif needed > capacity and held * 2 > capacity:
            larger = bytearray(min(needed, capacity * 2))
        if larger is not None:
            larger[:held] = self._view[self._start : self._end]
            self._adopt(larger)
        elif self._start > 0:
            self._view[:held] = self._view[self._start : self._end]
        else:
            return
        self._start, self._end = 0, held
