"""One client's connection: bytes in, frames to the node, answers out, in order.

Requests are carried out one after another; a parked one holds up those behind it and nobody
else's. The next is taken up when the answers before it are nearly written, so a slow reader
costs one response of memory, not a queue of them. File ranges go out by sendfile. The socket
does not block; the server tells when it may be read or written. Serving thread only.
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
# Answers beyond this wait in the request, not in memory.
_OUTPUT_MAX: Final = 1 << 20
# A connection writes so much before the others get their turn.
_WRITE_TURN: Final = 4 << 20
_IOV_MAX: Final = 64
_MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)

Buffer: TypeAlias = bytes | bytearray | memoryview


def hang_up(sock: socket.socket) -> None:
    """End a connection, or the listening for some, also where a forked child has the socket too."""
    with suppress(OSError):  # the peer is gone already
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


class Connection:
    """One client's socket, and what is on its way through it.

    Attributes:
        interest: what the server watches the socket for.
        active_at_ms: when it last read or wrote something, or was answered.
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
        self._file_sent = 0  # of the file range at the head of the output
        self._parked: Parked[Reply] | None = None
        self._hang_up = False
        self._ended = False  # the client has said all that it had to say

    def on_readable(self) -> None:
        """Receive once, and carry out what is complete."""
        if self._receive():
            self.active_at_ms = self._server.now_ms
            self.advance()

    def _receive(self) -> bool:
        """Whether anything came."""
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
        """The client sends no more. It may still read what it is being answered.

        Mostly it is gone, though: whatever it waited for, we do not wait with it.
        """
        self._ended = True
        self._finish()
        if not self.closed:
            self._show_interest()

    def _finish(self) -> None:
        """Of a client that sends no more: write out what there is, and hang up."""
        if not self._output:
            self.close()
        elif self._parked is not None:
            self._parked.abandon()
            self._parked = None
            self._hang_up = True

    @property
    def is_waiting(self) -> bool:
        """Whether the client waits for us: then its silence means nothing."""
        return self._parked is not None

    def advance(self) -> None:
        """Carry out requests until one is parked, none is left, or the answers pile up."""
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
        # Called from within whatever answered: only queue here, and let the loop do the rest.
        self._parked = None
        self.active_at_ms = self._server.now_ms
        self._queue(reply)
        self._server.advance_later(self)

    def _queue(self, reply: Reply) -> None:
        self._output.extend(reply.parts)
        self._output_bytes += sum(map(part_length, reply.parts))
        self._hang_up = reply.close

    def _write(self) -> bool:
        """Write until the socket takes no more, or the turn is over; whether any was written."""
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
            pass  # the rest when the socket is writable again
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
            raise ConnectionAbortedError("a segment is shorter than what was promised of it")
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
                more = _MSG_MORE  # the file range follows at once: no packet for the head alone
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
        # While a request waits, reading goes on as far as the buffer reaches: the end of the
        # connection is seen, and a client that sends on and on is not.
        blocked = not self._may_take_up_next()
        is_deaf = self._hang_up or self._ended or (blocked and not self._input.has_room)
        wanted = 0 if is_deaf else _READ
        if self._output:
            wanted |= _WRITE
        self._server.watch(self, wanted)

    def close(self) -> None:
        """Hang up now; what is not written yet is lost."""
        if self.closed:
            return
        self.closed = True
        self._server.forget(self)
        hang_up(self.sock)
        self._input.discard()
        self._output.clear()
        if self._parked is not None:
            self._parked.abandon()
