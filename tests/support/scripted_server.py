"""A scripted broker on a real socket, in the clear or with TLS: the same script, real bytes.

Cuts count the bytes on the wire, those of a TLS handshake included. Every connection has a
thread; the script itself runs under one lock.
"""

import socket
import ssl
import threading
from contextlib import suppress

from pyclient.net.scripted import ScriptedBroker
from pyclient.net.scripted.traffic import Traffic

_READ_BYTES = 1 << 16


class Wire:
    """Bytes over a socket, as far as the script lets them through."""

    def __init__(self, sock: socket.socket, traffic: Traffic) -> None:
        self._socket = sock
        self._traffic = traffic

    def read(self) -> bytes:
        """What came in; nothing at the end."""
        if self._traffic.is_cut:
            return b""
        return self._traffic.take_in(self._socket.recv(_READ_BYTES))

    def write(self, data: bytes) -> None:
        if not self._traffic.is_cut:
            self._socket.sendall(self._traffic.let_out(data))
        if self._traffic.is_cut:
            self.close()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


class TlsWire:
    """The same, encrypted: what goes over the wire is OpenSSL's."""

    def __init__(self, wire: Wire, context: ssl.SSLContext) -> None:
        self._wire = wire
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def read(self) -> bytes:
        while True:
            try:
                return self._ssl.read(_READ_BYTES)  # shakes hands first
            except ssl.SSLWantReadError:
                self._flush()
                data = self._wire.read()
                if not data:
                    return b""
                self._incoming.write(data)
            except ssl.SSLError:
                self._flush()  # the alert
                return b""

    def write(self, data: bytes) -> None:
        self._ssl.write(data)
        self._flush()

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            self._wire.write(data)

    def close(self) -> None:
        self._wire.close()


class _Connection:
    """The broker's end of a connection."""

    def __init__(self, wire: Wire | TlsWire) -> None:
        self._wire = wire

    def answer(self, data: bytes) -> None:
        with suppress(OSError):  # the client is gone
            self._wire.write(data)

    def fail(self, error: Exception) -> None:
        self._wire.close()


class ScriptedServer:
    """Serves a scripted broker on a free loopback port, which the broker learns."""

    def __init__(self, broker: ScriptedBroker, context: ssl.SSLContext | None = None) -> None:
        self._broker = broker
        self._context = context
        self._lock = threading.Lock()  # guards the script and the list of sockets
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        broker.host, broker.port = self._listening.getsockname()
        self._run(self._accept)

    def close(self) -> None:
        """Hang up on everybody and wait for the threads."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(10)
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
        self._listening.close()

    def _run(self, target, *arguments) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return  # closed
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets.append(sock)
            with self._lock:
                traffic = self._broker.new_traffic()
            self._run(self._serve, sock, traffic)

    def _serve(self, sock: socket.socket, traffic: Traffic) -> None:
        wire: Wire | TlsWire = Wire(sock, traffic)
        if self._context is not None:
            wire = TlsWire(wire, self._context)
        connection = _Connection(wire)
        unread = b""
        with sock, suppress(OSError):  # the client is gone
            while data := wire.read():
                unread += data
                while len(unread) >= (end := 4 + int.from_bytes(unread[:4], "big")) > 4:
                    with self._lock:
                        self._broker.serve(connection, unread[4:end])
                    unread = unread[end:]
