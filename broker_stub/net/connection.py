"""One client's connection: bytes in, frames to the node, answers out, in order.

Requests of a connection are handled one after another; a parked one delays those behind it. The
next request is handled when the responses before it are nearly written, so a slow reader costs
the memory of one response. File ranges are sent by sendfile. The socket does not block: the
server calls when it can be read or written. Serving thread only.
"""

from __future__ import annotations

import os
import selectors
import socket
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from broker_stub.log.files.file_slice import FileSlice
from broker_stub.net.receive_buffer import ReceiveBuffer
from broker_stub.request import ConnectionContext, Parked, Reply
from pyclient.protocol.primitives import Part, part_length

if TYPE_CHECKING:
    from broker_stub.net.server import Server

_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE
# With this much unwritten output, the next request is not handled yet.
_OUTPUT_MAX: Final = 1 << 20
# A connection writes at most this much before others get their turn.
_WRITE_TURN: Final = 4 << 20
_IOV_MAX: Final = 64
_MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)

Buffer: TypeAlias = bytes | bytearray | memoryview


def hang_up(sock: socket.socket) -> None:
    """Shut a socket down and close it, also where a forked child holds it too."""
    with suppress(OSError):  # the peer is gone already
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


class Connection:
    """One client's socket, with its input, its output and its parked request.

    Attributes:
        interest: the events that the server watches the socket for.
        active_at_ms: when it last read or wrote, or got an answer.
    """

    def __init__(self, server: Server, sock: socket.socket, context: ConnectionContext) -> None:
        self.sock = sock
        self.interest = 0
        self.closed = False
        self.active_at_ms = server.now_ms
        self._server = server
        self._context = context
        self._input = ReceiveBuffer(server.buffers, server.frame_limit)
        self._output: deque[Part] = deque()
        self._output_bytes = 0
        self._file_sent = 0  # bytes of the file range at the head of the output
        self._parked: Parked[Reply] | None = None
        self._hang_up = False
        self._ended = False  # the client has closed its side

    def on_readable(self) -> None:
        """Receive once, and handle the complete requests."""
        if self._receive():
            self.active_at_ms = self._server.now_ms
            self.advance()

    def _receive(self) -> bool:
        """Receive into the buffer; whether anything came."""
        try:
            count = self.sock.recv_into(self._input.room())
        except BlockingIOError:
            self._input.release()
            return False
        if count == 0:
            self._on_end()
            return False
        self._input.received(count)
        return True

    def _on_end(self) -> None:
        """The client has closed its side: write what there is, then close.

        It may still read responses, but is usually gone: a parked request is abandoned.
        """
        self._ended = True
        self._finish()
        if not self.closed:
            self._show_interest()

    def _finish(self) -> None:
        """Close, after what is left of the output."""
        if not self._output:
            self.close()
        elif self._parked is not None:
            self._parked.abandon()
            self._parked = None
            self._hang_up = True

    @property
    def is_waiting(self) -> bool:
        """Whether the client waits for a parked request, and is not idle."""
        return self._parked is not None

    def advance(self) -> None:
        """Handle requests until one is parked, none is left, or too much output is unwritten."""
        while True:
            while self._may_take_up_next():
                frame = self._input.next_frame()
                if frame is None:
                    break
                self._take(self._server.node.handle(frame, self._context))
            self._input.release()
            progressed = self._write()
            if self.closed or not progressed or not self._may_take_up_next():
                break
        if self._ended and not self.closed:
            self._finish()
        if not self.closed:
            self._show_interest()

    def _may_take_up_next(self) -> bool:
        return self._parked is None and not self._hang_up and self._output_bytes < _OUTPUT_MAX

    def _take(self, reply: Reply | Parked[Reply]) -> None:
        if isinstance(reply, Parked):
            self._parked = reply
            reply.deliver_to(self._on_answered)
        else:
            self._queue(reply)

    def _on_answered(self, reply: Reply) -> None:
        # The caller is in the middle of its own work: only queue here, the loop does the rest.
        self._parked = None
        self.active_at_ms = self._server.now_ms
        self._queue(reply)
        self._server.advance_later(self)

    def _queue(self, reply: Reply) -> None:
        self._output.extend(reply.parts)
        self._output_bytes += sum(map(part_length, reply.parts))
        self._hang_up = reply.close

    def _write(self) -> bool:
        """Write until the socket is full or the turn is over; whether any was written."""
        budget = _WRITE_TURN
        output = self._output
        try:
            while output and budget > 0:
                head = output[0]
                if isinstance(head, FileSlice):
                    sent = self._send_file(head)
                else:
                    sent = self._send_buffers()
                budget -= sent
                self._output_bytes -= sent
        except BlockingIOError:
            pass  # continue when the socket is writable
        if self._hang_up and not output:
            self.close()
        progressed = budget < _WRITE_TURN
        if progressed:
            self.active_at_ms = self._server.now_ms
        return progressed

    def _send_file(self, piece: FileSlice) -> int:
        left = piece.nbytes - self._file_sent
        sent = self._send_range(piece, piece.position + self._file_sent, left)
        if sent == 0:
            raise ConnectionAbortedError("a segment file is shorter than its range in a response")
        if sent == left:
            self._file_sent = 0
            self._output.popleft()
        else:
            self._file_sent += sent
        return sent

    def _send_buffers(self) -> int:
        """Send the buffers at the head of the output in one call."""
        buffers: list[Buffer] = []
        more = 0
        for part in self._output:
            if isinstance(part, FileSlice):
                more = _MSG_MORE  # a file range follows: do not send the head in its own packet
                break
            if len(buffers) == _IOV_MAX:
                break
            buffers.append(part)  # type: ignore[arg-type]
        sent = self._send_some(buffers, more)
        left = sent
        for buffer in buffers:
            self._output.popleft()
            size = part_length(buffer)
            if left < size:
                self._output.appendleft(memoryview(buffer)[left:])
                break
            left -= size
        return sent

    def _send_some(self, buffers: Sequence[Buffer], more: int) -> int:
        return self.sock.sendmsg(buffers, [], more)

    def _send_range(self, piece: FileSlice, position: int, count: int) -> int:
        return os.sendfile(self.sock.fileno(), piece.fd, position, count)

    def _show_interest(self) -> None:
        # While a request is parked, read until the buffer is full: so the end of the connection
        # is noticed, and a client that keeps sending is held back.
        blocked = not self._may_take_up_next()
        is_deaf = self._hang_up or self._ended or (blocked and not self._input.has_room)
        wanted = 0 if is_deaf else _READ
        if self._output:
            wanted |= _WRITE
        self._server.watch(self, wanted)

    def close(self) -> None:
        """Close now; unwritten output is lost."""
        if self.closed:
            return
        self.closed = True
        self._server.forget(self)
        hang_up(self.sock)
        self._input.discard()
        self._output.clear()
        if self._parked is not None:
            self._parked.abandon()
