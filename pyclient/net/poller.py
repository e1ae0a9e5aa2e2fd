"""The interface between the engine and the network: write, wait, read.

`Poller` and `Transport` are all that the engine knows of a network; tests replace them by a
scripted one. Plaintext connections use the native exchange (`_native/exchange.pyx`), which does a
whole turn in one release of the GIL. TLS, the pure-Python twin and Windows use sockets and the
system's selector. Used by the I/O thread only, except for `wake`.
"""

from __future__ import annotations

import importlib
import math
import os
import selectors
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from pyclient import _twin
from pyclient.net.frame_reader import invalid_length
from pyclient.net.resolver import Address, Resolution, resolve
from pyclient.net.transport import SocketOptions, TcpTransport, connecting_socket
from pyclient.protocol.primitives import Part

if TYPE_CHECKING:
    from pyclient.net.connection import Connection

_SCRATCH_BYTES: Final = 1 << 16


class Transport(Protocol):
    """A stream of frames to one address.

    Attributes:
        connected: whether the connection has been made.
        error: why the transport can't be used any more; None while it can.
        parts_sent: how many of the parts given to `send` have left this process.
        owner: the connection that opened it.
    """

    connected: bool
    error: Exception | None
    parts_sent: int
    owner: Connection

    @property
    def secured(self) -> bool:
        """Whether the TLS handshake is done; true without TLS."""

    def send(self, parts: Sequence[Part]) -> int:
        """Queue parts for the next poll, and tell how many were ever queued.

        The transport refers to them until they are sent or it is closed.
        """

    def take_frames(self) -> list[memoryview]:
        """The frames that have arrived since the last call, without their lengths."""

    def close(self) -> None:
        """Let go of the socket and of all queued parts."""


class Poller(Protocol):
    """The network as the engine sees it."""

    def resolve(self, host: str, port: int) -> Resolution:
        """Begin to look up a host; when it is done, a poll ends."""

    def open(self, address: Address, owner: Connection) -> Transport:
        """Begin to connect. A failure, even an immediate one, is reported by a later poll."""

    def poll(self, timeout_ms: float) -> Sequence[Transport]:
        """Write, wait for at most `timeout_ms`, read; the transports that have news.

        News is a connection made, frames that arrived, parts that went out after a wait, or an
        error. Returns early when there is any, and after `wake`.
        """

    def wake(self) -> None:
        """End the current poll, or the next one if none is under way. Any thread."""

    def close(self) -> None:
        """Close the poller. Its transports are closed already."""


def new_poller(options: SocketOptions) -> Poller:
    """The poller for these options."""
    if _twin.NATIVE and options.tls is None and os.name == "posix":
        return ExchangePoller(options)
    return SelectorPoller(options)


class ExchangePoller:
    """Sockets and the native exchange."""

    def __init__(self, options: SocketOptions) -> None:
        self._options = options
        native = importlib.import_module("pyclient._native.exchange")
        self._exchange: Any = native.Exchange(
            *_wake_sockets(), options.receive_message_max_bytes, invalid_length
        )
        # Called once a turn and once a wake-up: no method in between.
        self.poll: Callable[[float], Sequence[Transport]] = self._exchange.turn
        self.wake: Callable[[], None] = self._exchange.wake

    def resolve(self, host: str, port: int) -> Resolution:
        """Begin to look up a host; when it is done, a poll ends."""
        return resolve(host, port, self.wake)

    def open(self, address: Address, owner: Connection) -> Transport:
        """Start a non-blocking connect."""
        try:
            sock = connecting_socket(address, self._options)
        except OSError as error:
            return cast(Transport, self._exchange.add_failed(error, owner))
        return cast(Transport, self._exchange.add(sock, owner))

    def close(self) -> None:
        """Close the wake-up sockets."""
        self._exchange.close()


def _wake_sockets() -> tuple[socket.socket, socket.socket]:
    """Where a wake-up is read, and where it is written."""
    pair = socket.socketpair()
    for one in pair:
        one.setblocking(False)
    return pair


class SelectorPoller:
    """Sockets and the system's selector."""

    def __init__(self, options: SocketOptions) -> None:
        self._options = options
        self._transport = TcpTransport
        if options.tls is not None:
            from pyclient.net.tls_transport import TlsTransport  # loads `ssl`

            self._transport = TlsTransport
        self._selector = selectors.DefaultSelector()
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._unflushed: dict[TcpTransport, None] = {}
        self._failed_at_once: list[TcpTransport] = []
        # A flag makes most wake-ups free: only a sleeping poll needs the byte.
        self._woken = False
        self._asleep = False
        self._wake_receiver, self._wake_sender = _wake_sockets()
        self._selector.register(self._wake_receiver, selectors.EVENT_READ, None)

    def resolve(self, host: str, port: int) -> Resolution:
        """Begin to look up a host; when it is done, a poll ends."""
        return resolve(host, port, self.wake)

    def open(self, address: Address, owner: Connection) -> TcpTransport:
        """Start a non-blocking connect."""
        transport = self._transport(address, self._options, owner, self)
        if transport.error is None:
            self._selector.register(transport.socket, selectors.EVENT_WRITE, transport)
        else:
            self._failed_at_once.append(transport)
        return transport

    def unflushed(self, transport: TcpTransport) -> None:
        """A transport has parts to write. Called by the transport."""
        self._unflushed[transport] = None

    def forget(self, transport: TcpTransport) -> None:
        """A transport is about to close its socket. Called by the transport."""
        self._unflushed.pop(transport, None)
        self._selector.unregister(transport.socket)

    def wake(self) -> None:
        """End the current poll, or the next one if none is under way. Any thread."""
        # The order matters: the poll sets `sleeps` before it reads the flag, so either it sees the
        # flag or we see that it sleeps. A second byte does no harm. Noting that a byte was sent
        # would: a signal handler may interrupt us between the note and the send.
        self._woken = True
        if self._asleep:
            try:
                self._wake_sender.send(b"\0")
            except OSError:
                # Full: the poll is being woken already. Closed: there is nothing to wake.
                return

    def poll(self, timeout_ms: float) -> Sequence[TcpTransport]:
        """Write, wait for at most `timeout_ms`, read; the transports that have news."""
        news: dict[TcpTransport, None] = {}
        if self._failed_at_once:
            news = dict.fromkeys(self._failed_at_once)
            self._failed_at_once.clear()
        if self._unflushed:
            self._flush(news)
        for key, events in self._select(0 if news else timeout_ms):
            transport = key.data
            if transport is None:
                self._wake_receiver.recv(64)
                continue
            if events & selectors.EVENT_WRITE:
                self._on_writable(transport, news)
            if events & selectors.EVENT_READ:
                transport.receive(self._scratch)
                news[transport] = None
        return list(news)

    def _select(self, timeout_ms: float) -> list[tuple[selectors.SelectorKey, int]]:
        self._asleep = True
        if self._woken:
            timeout_ms = 0
        try:
            return self._selector.select(
                None if timeout_ms == math.inf else max(timeout_ms, 0) / 1000
            )
        finally:
            self._asleep = False
            self._woken = False

    def _flush(self, news: dict[TcpTransport, None]) -> None:
        for transport in self._unflushed:
            if not transport.flush():
                self._want_write(transport, True)
            if transport.error is not None:
                news[transport] = None
        self._unflushed.clear()

    def _on_writable(self, transport: TcpTransport, news: dict[TcpTransport, None]) -> None:
        if not transport.connected:
            transport.finish_connecting()
        if transport.flush():
            self._want_write(transport, False)
        news[transport] = None

    def _want_write(self, transport: TcpTransport, wanted: bool) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        self._selector.modify(transport.socket, events, transport)

    def close(self) -> None:
        """Close the selector and the wake-up sockets."""
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()
