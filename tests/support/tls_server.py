"""Servers that TLS clients fail at: each connection is handed to a function, on a thread."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress

Behaviour = Callable[[socket.socket], None]


class ScriptedServer:
    """Listens on a free loopback port; `with` closes it and all its connections."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def port(self) -> int:
        return self._listening.getsockname()[1]

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        assert not self._thread.is_alive()
        for connection in self._connections:
            connection.close()

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listening.accept()[0]
            except OSError:
                return  # closed
            self._connections.append(connection)
            with suppress(OSError):  # the client has had enough
                self._behaviour(connection)


def says_nothing(connection: socket.socket) -> None:
    """Accepts, and reads until the client gives up."""
    while connection.recv(65_536):
        pass


def hangs_up(connection: socket.socket) -> None:
    """Closes at the first bytes."""
    connection.recv(65_536)
    connection.close()


def speaks_http(connection: socket.socket) -> None:
    """A web server: whatever comes is a bad request."""
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    connection.close()


def speaks_tls(context: ssl.SSLContext) -> Behaviour:
    """Shakes hands, then says nothing."""

    def behave(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            says_nothing(secured)

    return behave
