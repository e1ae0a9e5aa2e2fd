"""The broker's end of a simulated connection: what `broker_stub.net.server` does with a socket.

Requests are carried out one after another, in order; a parked one holds up those behind it.
The scheduler's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from broker_stub.net.receive_buffer import ReceiveBuffer
from broker_stub.request import ConnectionContext, Parked, Reply
from broker_stub.testing.simulation.wire import Wire
from pyclient.errors import ProtocolError

if TYPE_CHECKING:
    from broker_stub.testing.simulation.broker_life import BrokerLife


class BrokerConnection:
    """The broker's end of a connection: bytes in, frames to the node, answers out."""

    def __init__(self, life: BrokerLife, wire: Wire, context: ConnectionContext) -> None:
        self._life = life
        self._wire = wire
        self._context = context
        self._unread: deque[bytes] = deque()
        self._input = ReceiveBuffer(life.buffers, life.frame_limit)
        self._parked: Parked[Reply] | None = None
        self._is_closed = False
        self._is_due = False

    def receive(self, data: bytes) -> None:
        if not self._is_closed:
            self._unread.append(data)
            self._serve_soon()

    def lose(self, error: Exception) -> None:  # noqa: ARG002  whatever it is, the client is gone
        """The client is gone."""
        if not self._is_closed:
            self._let_go()
            self._life.forget(self)

    def _serve_soon(self) -> None:
        if not self._is_due and self._parked is None:
            self._is_due = True
            self._life.soon(self._serve)

    def _serve(self) -> None:
        """Carry out one request, if there is one."""
        self._is_due = False
        if self._is_closed or self._parked is not None:
            return
        self._read()
        try:
            frame = self._input.next_frame()
        except ProtocolError:
            self.hang_up()
            return
        if frame is None:
            self._input.release()
            return
        self._life.maybe_double(frame)
        reply = self._life.node.handle(frame, self._context)
        if isinstance(reply, Parked):
            self._parked = reply
            reply.deliver_to(self._on_answered)
        else:
            self._answer(reply)

    def _read(self) -> None:
        while self._unread and self._input.has_room:
            data = self._unread.popleft()
            room = self._input.room()
            count = min(len(room), len(data))
            room[:count] = data[:count]
            self._input.received(count)
            if count < len(data):
                self._unread.appendleft(data[count:])

    def _on_answered(self, reply: Reply) -> None:
        self._parked = None
        self._answer(reply)

    def _answer(self, reply: Reply) -> None:
        data = b"".join(_bytes_of(part) for part in reply.parts)
        if data:
            self._wire.server_writes(data)
        if reply.close:
            self.hang_up()
        else:
            self._serve_soon()

    def hang_up(self) -> None:
        self._let_go()
        self._life.forget(self)
        self._wire.server_closed()

    def vanish(self) -> None:
        """Drop the connection without a close, as a power loss does."""
        self._let_go()
        self._wire.server_vanished()

    def _let_go(self) -> None:
        self._is_closed = True
        self._input.discard()
        self._unread.clear()
        if self._parked is not None:
            self._parked.abandon()


def api_key_of(frame: memoryview) -> int:
    """The API key of a request."""
    return int.from_bytes(frame[:2], "big", signed=True)


def _bytes_of(part: Any) -> bytes:
    read: Callable[[], bytes] | None = getattr(part, "read", None)  # a range of a file
    return bytes(part) if read is None else read()
