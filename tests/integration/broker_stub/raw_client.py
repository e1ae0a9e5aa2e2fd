"""A client of bare sockets and our codec: sees bytes, order and hang-ups as they are."""

import socket
import ssl
from typing import Any, Self

from pyclient.protocol.frame import LENGTH, request_frame
from pyclient.protocol.header import ResponseHeader, response_header_version
from pyclient.protocol.registry import response_class
from pyclient.protocol.schema import Message


class RawClient:
    """One connection; requests and responses are separate steps, so they can be pipelined."""

    def __init__(
        self, port: int, *, receive_buffer: int | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", port))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self._correlation_id = 0
        self._in_flight: list[tuple[int, Message, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def frame(self, request: Message, version: int, *, answered: bool = True) -> bytes:
        self._correlation_id += 1
        if answered:
            self._in_flight.append((self._correlation_id, request, version))
        parts = request_frame(request, version, self._correlation_id, "raw")
        return b"".join(parts)  # type: ignore[arg-type]

    def send(self, request: Message, version: int, *, answered: bool = True) -> None:
        self.socket.sendall(self.frame(request, version, answered=answered))

    def receive(self) -> Any:
        """The response to the oldest request in flight."""
        correlation_id, request, version = self._in_flight.pop(0)
        (length,) = LENGTH.unpack(self.read(LENGTH.size))
        body = self.read(length)
        assert request.api_key is not None
        declared = response_class(request.api_key)
        header, position = ResponseHeader.decode_from(
            body, 0, response_header_version(declared, version)
        )
        assert header.correlation_id == correlation_id
        return declared.decode(memoryview(body)[position:], version)

    def ask(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return self.receive()

    def read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self.socket.recv(min(count - len(data), 1 << 20))
            if not piece:
                raise ConnectionError(f"hung up after {len(data)} of {count} bytes")
            data += piece
        return bytes(data)

    def is_closed_by_peer(self) -> bool:
        """Wait for the end of the connection; False if bytes come instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
