"""The broker's selector loop: one thread that everything of the node happens on.

It listens, accepts, and tells connections when they can read or write. It sleeps until a socket,
a timer or another thread wakes it. Other threads use `call_soon`, `wake` and `stop` only.
"""

from __future__ import annotations

import errno
import selectors
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Final

from broker_stub import diagnostics
from broker_stub.net.connection import Connection, hang_up
from broker_stub.net.idle_connections import IdleConnections
from broker_stub.net.receive_buffer import BufferPool
from broker_stub.purgatory import Timer, Timers
from broker_stub.request import ConnectionContext
from pyclient.clock import Clock, ManualClock
from pyclient.errors import ProtocolError

if TYPE_CHECKING:
    import ssl

    from broker_stub.config.listeners import Listener
    from broker_stub.node import Node

_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE
_ACCEPT_TURN: Final = 64
_BACKLOG: Final = 1024
# Out of descriptors: accepting again at once would only fail again.
_ACCEPT_PAUSE_MS: Final = 100
# The prefix of an IPv4 client's address on a dual-stack socket.
_MAPPED_IPV4: Final = "::ffff:"
# Options may ask for years, which no selector accepts; the loop just waits again.
_SELECT_MAX_MS: Final = 3_600_000


class PortInUseError(OSError):
    """Another process listens on the port already."""


class Server:
    """Listens, and runs the loop that everything of the node happens on."""

    def __init__(self, clock: Clock) -> None:
        self.node: Node
        self.buffers = BufferPool()
        self.frame_limit = 0
        self.now_ms = clock.monotonic_ms()  # when the loop last woke up
        self._clock = clock
        self._send_buffer_bytes = -1
        self._timers = Timers(clock)  # of connections; the node has its own
        self._selector = selectors.DefaultSelector()
        self._listeners: dict[socket.socket, str] = {}
        self._tls: dict[str, ssl.SSLContext] = {}
        self._connections: set[Connection] = set()
        self._idle = IdleConnections(self._connections, self._timers, clock)
        self._connection_count = 0
        self._ready: deque[Connection] = deque()
        self._calls: deque[Callable[[], None]] = deque()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self._selector.register(self._wake_receiver, _READ, self._on_woken)
        self._thread: Thread | None = None
        self._stopping = False

    def listen(
        self, listeners: Sequence[Listener], tls: Mapping[str, ssl.SSLContext]
    ) -> list[Listener]:
        """Bind the listeners; port 0 becomes a free one. Clients wait until `start`.

        Args:
            listeners: where to listen.
            tls: the contexts of the listeners that speak TLS, by name.

        Raises:
            PortInUseError: another process has the port.
            OSError: there is no such address, or no permission to listen on it.
        """
        self._tls = dict(tls)
        bound = []
        for listener in listeners:
            sock = _listening_socket(listener)
            self._listeners[sock] = listener.name
            self._watch_listener(sock)
            bound.append(listener._replace(port=sock.getsockname()[1]))
        return bound

    def start(self, node: Node) -> None:
        """Serve the node on a new thread."""
        self.node = node
        self.frame_limit = node.config["socket.request.max.bytes"]
        self._idle.max_idle_ms = node.config["connections.max.idle.ms"]
        self._send_buffer_bytes = node.config["socket.send.buffer.bytes"]
        self._thread = Thread(target=self._run, name=f"broker-{node.node_id}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close all connections and end the loop. Any thread but the loop's own."""
        if self._thread is None:
            self._close()
            return
        self._stopping = True
        self.wake()
        self._thread.join()

    @property
    def running(self) -> bool:
        """Whether the loop's thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def call_soon(self, call: Callable[[], None]) -> None:
        """Run `call` on the loop's thread. Any thread."""
        self._calls.append(call)
        self.wake()

    def wake(self) -> None:
        """Wake the loop, to look at its calls and timers. Any thread."""
        if self._thread is current_thread():
            return
        with suppress(OSError):  # full of wake-ups, or the server is closed
            self._wake_sender.send(b"\0")

    def after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back in `delay_ms`, unless the timer is cancelled."""
        return self._timers.after(delay_ms, callback)

    def advance_later(self, connection: Connection) -> None:
        """Advance a connection after the current event."""
        self._ready.append(connection)

    def watch(self, connection: Connection, interest: int) -> None:
        """Watch the connection's socket for these events."""
        if interest == connection.interest:
            return
        # Without an interest it is not registered: the selector would report a hang-up repeatedly.
        if not connection.interest:
            self._selector.register(connection.sock, interest, connection)
        elif not interest:
            self._selector.unregister(connection.sock)
        else:
            self._selector.modify(connection.sock, interest, connection)
        connection.interest = interest

    def forget(self, connection: Connection) -> None:
        """Stop watching a connection that is being closed."""
        self.watch(connection, 0)
        self._connections.discard(connection)

    def _run(self) -> None:
        try:
            while not self._stopping:
                ready = self._selector.select(self._timeout())
                self.now_ms = self._clock.monotonic_ms()
                # Timers before sockets: a heartbeat that arrives too late must not save its
                # session.
                self._guard(self.node.timers.fire)
                if len(ready) > 1 and not self.node.dispatcher.interceptors:
                    self.node.turn.begin()  # faults and watchers see one request after another
                for key, events in ready:
                    self._dispatch(key.data, events)
                self._guard(self.node.turn.end)
                self._guard(self._run_calls)
                self._guard(self._timers.fire)
                while self._ready:
                    connection = self._ready.popleft()
                    if not connection.closed:
                        self._on_event(connection, connection.advance)
        finally:
            self._close()

    def _timeout(self) -> float | None:
        if self._calls or self._ready:
            return 0
        deadlines_ms = (self.node.timers.next_deadline_ms(), self._timers.next_deadline_ms())
        deadline_ms = min((one for one in deadlines_ms if one is not None), default=None)
        if deadline_ms is None:
            return None
        left_ms = deadline_ms - self._clock.monotonic_ms()
        if isinstance(self._clock, ManualClock):
            # Its time does not pass while the loop sleeps: advancing it wakes the loop.
            return 0 if left_ms <= 0 else None
        return min(max(0.0, left_ms), _SELECT_MAX_MS) / 1000

    def _dispatch(self, target: Connection | Callable[[], None], events: int) -> None:
        if not isinstance(target, Connection):
            self._guard(target)
            return
        if events & _WRITE and not target.closed:
            self._on_event(target, target.advance)
        # Not the events alone: writing may have led to a parked request.
        if events & target.interest & _READ:
            self._on_event(target, target.on_readable)

    def _on_event(self, connection: Connection, act: Callable[[], None]) -> None:
        try:
            act()
        except ProtocolError as error:
            diagnostics.warn("closing a connection: %s", error)
            connection.close()
        except OSError:
            connection.close()  # the peer is gone
        except Exception:  # noqa: BLE001  logged; the other connections go on
            diagnostics.exception("closing a connection after an internal error")
            connection.close()

    def _guard(self, act: Callable[[], None]) -> None:
        """Call; an exception is logged and does not end the loop."""
        try:
            act()
        except Exception:  # noqa: BLE001  logged; the loop goes on
            diagnostics.exception("an internal error in the broker's loop")

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
                continue  # this client is gone again
            self._greet(sock, address, self._listeners[listening])

    def _pause_accepting(self, listening: socket.socket, error: OSError) -> None:
        diagnostics.warn("can't accept connections, trying again in 100 ms: %s", error)
        self._selector.unregister(listening)
        self._timers.after(_ACCEPT_PAUSE_MS, lambda: self._watch_listener(listening))

    def _greet(self, sock: socket.socket, address: tuple[str, int], listener: str) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A peer whose machine has crashed sends no FIN.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._send_buffer_bytes >= 0:
            # What the client has not read yet waits in the file. In a large socket buffer it would
            # cost the client's thread: on loopback, receiving also moves the next packets.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        self._connection_count += 1
        host, port = address[0].removeprefix(_MAPPED_IPV4), address[1]
        context = ConnectionContext(f"{host}:{port}-{self._connection_count}", host, listener)
        connection = self._connection(sock, context)
        if connection is None:
            return
        self._connections.add(connection)
        self.watch(connection, _READ)
        self._idle.on_connected()

    def _connection(self, sock: socket.socket, context: ConnectionContext) -> Connection | None:
        tls = self._tls.get(context.listener)
        if tls is None:
            return Connection(self, sock, context)
        from broker_stub.net.tls_connection import TlsConnection

        try:
            return TlsConnection(self, sock, context, tls)
        except OSError:
            sock.close()  # the client is gone again
            return None

    def _close(self) -> None:
        for connection in list(self._connections):
            connection.close()
        for sock in self._listeners:
            hang_up(sock)
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()


def _listening_socket(listener: Listener) -> socket.socket:
    host, port = listener.host, listener.port
    # All interfaces means both families, where the system can do that.
    is_dual = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_dual or ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if is_dual:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Without it, a restart on the same port fails until old connections time out.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        where = host or "all interfaces"
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(
                errno.EADDRINUSE, f"port {port} on {where} is in use by another process"
            ) from None
        raise OSError(
            error.errno, f"can't listen on port {port} of {where}: {error.strerror}"
        ) from None
    return sock
