"""The sockets of a broker: one selector loop, one thread, and nothing of Kafka's APIs.

Per connection requests are carried out one after another, in order; a parked one holds up those
behind it and nobody else. The next request is taken up when the answers before it are nearly
written, so a slow reader costs one response of memory, not a queue of them. File ranges go out
by sendfile. The loop sleeps until a socket, a timer or another thread wakes it.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Final

from broker_stub import diagnostics
from broker_stub.log.file_slice import FileSlice
from broker_stub.receive_buffer import BufferPool, ReceiveBuffer
from broker_stub.request import ConnectionContext, Parked, Reply
from pyclient.clock import Clock, ManualClock
from pyclient.errors import ProtocolError
from pyclient.protocol.primitives import Part, part_length

if TYPE_CHECKING:
    from broker_stub.metadata.image import Endpoint
    from broker_stub.node import Node

_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE
# Answers beyond this wait in the request, not in memory.
_OUTPUT_MAX: Final = 1 << 20
# A connection writes so much before the others get their turn.
_WRITE_TURN: Final = 4 << 20
_ACCEPT_TURN: Final = 64
_IOV_MAX: Final = 64
_BACKLOG: Final = 1024
# Out of descriptors: accepting again at once would only fail again.
_ACCEPT_PAUSE_MS: Final = 100
_MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)


class PortInUseError(OSError):
    """Another process listens on the port already."""


class Connection:
    """One client's socket: bytes in, frames to the node, answers out."""

    def __init__(self, server: Server, sock: socket.socket, context: ConnectionContext) -> None:
        self.sock = sock
        self.interest = 0
        self.closed = False
        self._server = server
        self._context = context
        self._input = ReceiveBuffer(server.buffers, server.frame_limit)
        self._output: deque[Part] = deque()
        self._output_bytes = 0
        self._file_sent = 0  # of the file range at the head of the output
        self._parked: Parked[Reply] | None = None
        self._hang_up = False

    def on_readable(self) -> None:
        """Receive once, and carry out what is complete."""
        try:
            count = self.sock.recv_into(self._input.room())
        except BlockingIOError:
            self._input.release()
            return
        if count == 0:
            self.close()
            return
        self._input.received(count)
        self.advance()

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
        return budget < _WRITE_TURN

    def _send_file(self, piece: FileSlice) -> int:
        left = piece.nbytes - self._file_sent
        sent = os.sendfile(self.sock.fileno(), piece.fd, piece.position + self._file_sent, left)
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
        buffers: list[bytes | bytearray | memoryview] = []
        more = 0
        for part in self._output:
            if isinstance(part, FileSlice):
                more = _MSG_MORE  # the file range follows at once: no packet for the head alone
                break
            if len(buffers) == _IOV_MAX:
                break
            buffers.append(part)  # type: ignore[arg-type]
        sent = self.sock.sendmsg(buffers, [], more)
        left = sent
        for buffer in buffers:
            self._output.popleft()
            size = part_length(buffer)
            if left < size:
                self._output.appendleft(memoryview(buffer)[left:])
                break
            left -= size
        return sent

    def _show_interest(self) -> None:
        # While a request waits, reading goes on as far as the buffer reaches: the end of the
        # connection is seen, and a client that sends on and on is not.
        blocked = not self._may_take_up_next()
        wanted = 0 if self._hang_up or (blocked and not self._input.has_room) else _READ
        if self._output:
            wanted |= _WRITE
        self._server.watch(self, wanted)

    def close(self) -> None:
        """Hang up now; what is not written yet is lost."""
        if self.closed:
            return
        self.closed = True
        self._server.forget(self)
        self.sock.close()
        self._input.discard()
        self._output.clear()
        if self._parked is not None:
            self._parked.abandon()


class Server:
    """Listens, and runs the loop that everything of the node happens on."""

    def __init__(self, clock: Clock) -> None:
        self.node: Node
        self.buffers = BufferPool()
        self.frame_limit = 0
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._listeners: dict[socket.socket, str] = {}
        self._connections: set[Connection] = set()
        self._connection_count = 0
        self._ready: deque[Connection] = deque()
        self._calls: deque[Callable[[], None]] = deque()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self._selector.register(self._wake_receiver, _READ, self._on_woken)
        self._thread: Thread | None = None
        self._stopping = False

    def listen(self, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
        """Bind the endpoints; port 0 becomes a free one. Clients wait until `start`.

        Raises:
            PortInUseError: another process has the port.
        """
        bound = []
        for endpoint in endpoints:
            sock = _listening_socket(endpoint)
            self._listeners[sock] = endpoint.listener
            self._watch_listener(sock)
            bound.append(endpoint._replace(port=sock.getsockname()[1]))
        return bound

    def start(self, node: Node) -> None:
        """Serve the node, on a thread of its own."""
        self.node = node
        self.frame_limit = node.config["socket.request.max.bytes"]
        self._thread = Thread(target=self._run, name=f"broker-{node.node_id}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Hang up on everybody and end the loop. Any thread but the loop's own."""
        if self._thread is None:
            self._close()
            return
        self._stopping = True
        self.wake()
        self._thread.join()

    @property
    def running(self) -> bool:
        """Whether the loop goes round."""
        return self._thread is not None and self._thread.is_alive()

    def call_soon(self, call: Callable[[], None]) -> None:
        """Have the loop call this. Any thread."""
        self._calls.append(call)
        self.wake()

    def wake(self) -> None:
        """Make the loop look around. Any thread."""
        if self._thread is current_thread():
            return
        with suppress(OSError):  # full of wake-ups already, or the server is gone
            self._wake_sender.send(b"\0")

    def advance_later(self, connection: Connection) -> None:
        """Go on with a connection once the current event is dealt with."""
        self._ready.append(connection)

    def watch(self, connection: Connection, interest: int) -> None:
        """Wait for what the connection wants to know."""
        if interest == connection.interest:
            return
        # Not registered without an interest: the selector would report a hang-up over and over.
        if not connection.interest:
            self._selector.register(connection.sock, interest, connection)
        elif not interest:
            self._selector.unregister(connection.sock)
        else:
            self._selector.modify(connection.sock, interest, connection)
        connection.interest = interest

    def forget(self, connection: Connection) -> None:
        """A connection is being closed."""
        self.watch(connection, 0)
        self._connections.discard(connection)

    def _run(self) -> None:
        try:
            while not self._stopping:
                for key, events in self._selector.select(self._timeout()):
                    self._dispatch(key.data, events)
                self._guard(self._run_calls)
                self._guard(self.node.timers.fire)
                while self._ready:
                    connection = self._ready.popleft()
                    if not connection.closed:
                        self._on_event(connection, connection.advance)
        finally:
            self._close()

    def _timeout(self) -> float | None:
        if self._calls or self._ready:
            return 0
        deadline_ms = self.node.timers.next_deadline_ms()
        if deadline_ms is None:
            return None
        left_ms = deadline_ms - self._clock.monotonic_ms()
        if isinstance(self._clock, ManualClock):
            # Its time does not pass while we sleep: who moves it wakes us.
            return 0 if left_ms <= 0 else None
        return max(0.0, left_ms) / 1000

    def _dispatch(self, target: Connection | Callable[[], None], events: int) -> None:
        if not isinstance(target, Connection):
            self._guard(target)
            return
        if events & _WRITE and not target.closed:
            self._on_event(target, target.advance)
        # Asked again: having written may have led to a request that is to be waited for.
        if events & target.interest & _READ:
            self._on_event(target, target.on_readable)

    def _on_event(self, connection: Connection, act: Callable[[], None]) -> None:
        try:
            act()
        except ProtocolError as error:
            diagnostics.warn("closing a connection: %s", error)
            connection.close()
        except OSError:
            connection.close()  # reset, broken pipe, timed out: the peer is gone
        except Exception:  # noqa: BLE001  logged; the other connections go on
            diagnostics.exception("closing a connection that could not be served")
            connection.close()

    def _guard(self, act: Callable[[], None]) -> None:
        """Call something whose failure must not end the loop."""
        try:
            act()
        except Exception:  # noqa: BLE001  logged; the loop goes on
            diagnostics.exception("in the broker's loop")

    def _run_calls(self) -> None:
        for _ in range(len(self._calls)):
            self._calls.popleft()()

    def _on_woken(self) -> None:
        with suppress(BlockingIOError):
            while self._wake_receiver.recv(4096):
                pass

    def _watch_listener(self, sock: socket.socket) -> None:
        self._selector.register(sock, _READ, lambda: self._accept(sock))

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPT_TURN):
            try:
                sock, address = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._pause_accepting(listening, error)
                    return
                continue  # this one client is gone again
            self._greet(sock, address, self._listeners[listening])

    def _pause_accepting(self, listening: socket.socket, error: OSError) -> None:
        diagnostics.warn("can't accept connections for a moment: %s", error)
        self._selector.unregister(listening)
        self.node.timers.after(_ACCEPT_PAUSE_MS, lambda: self._watch_listener(listening))

    def _greet(self, sock: socket.socket, address: tuple[str, int], listener: str) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A peer whose machine is gone sends no goodbye.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._connection_count += 1
        host, port = address[:2]
        context = ConnectionContext(f"{host}:{port}-{self._connection_count}", host, listener)
        connection = Connection(self, sock, context)
        self._connections.add(connection)
        self.watch(connection, _READ)

    def _close(self) -> None:
        for connection in list(self._connections):
            connection.close()
        for sock in self._listeners:
            sock.close()
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()


def _listening_socket(endpoint: Endpoint) -> socket.socket:
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Without it a restart on the same port waits for the old connections to time out.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((endpoint.host, endpoint.port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(
                errno.EADDRINUSE,
                f"port {endpoint.port} on {endpoint.host} is in use by another process",
            ) from None
        raise
    return sock
