"""One connection of the simulated network: two streams of bytes that take time, stall and break.

As with TCP, a stream keeps its order, and nothing is lost while the connection lives: what goes
missing is the rest of a stream, because the connection broke, or because it stalls until
somebody's patience ends. What was under way when an end closed may still arrive, or not.
The scheduler's thread, or the program that has the baton.
"""

from __future__ import annotations

import errno
import math
import os
import zlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from broker_stub.testing.simulation.network import Network

# A stall is for good, or for a time in this range: shorter and longer than clients wait.
_FOR_GOOD: Final = 0.5
_STALL_MS: Final = (100.0, 30_000.0)


class End(Protocol):
    """What takes the bytes at one end of a connection."""

    def receive(self, data: bytes) -> None:
        """Called with bytes that have arrived."""

    def lose(self, error: Exception) -> None:
        """The other end is gone, or the way to it: nothing more arrives, nothing gets out."""


class Listener(Protocol):
    """Somebody who takes connections at an address."""

    @property
    def is_up(self) -> bool:
        """Whether anybody takes them now."""

    @property
    def is_powered(self) -> bool:
        """Whether the machine is there, to refuse for one who is not."""

    def accept(self, wire: Wire) -> End:
        """A client has connected."""


class Stream:
    """One direction of a connection.

    Attributes:
        is_full: the sender's socket takes nothing more, because the stream stalls.
    """

    def __init__(self, network: Network, name: str) -> None:
        self.name = name
        self.is_full = False
        self._network = network
        self._is_dead = False
        self._stalls_for_good = False
        self._last_us = 0  # when all that was written so far has arrived

    def write(self, data: bytes, deliver: Callable[[bytes], None]) -> None:
        """Put bytes on their way, behind those before them."""
        for piece in self._network.pieces(data):
            self._send(partial(self._arrive, piece, deliver))

    def tell(self, action: Callable[[], None]) -> None:
        """Have something happen at the other end, behind what is on its way."""
        self._send(partial(self._happen, action))

    def kill(self) -> None:
        """Let nothing more arrive."""
        self._is_dead = True

    def stall(self, milliseconds: float, *, is_full: bool) -> None:
        """Let nothing more arrive for a while; infinity: for good."""
        self.is_full = is_full
        if milliseconds == math.inf:
            self._stalls_for_good = True
        else:
            self._last_us = max(self._last_us, self._network.clock.after(milliseconds))
            self._network.scheduler.at(self._last_us, self._drained)

    def _drained(self) -> None:
        self.is_full = False

    def _send(self, action: Callable[[], None]) -> None:
        if not self._is_dead and not self._stalls_for_good:
            network = self._network
            self._last_us = max(self._last_us, network.clock.after(network.delay_ms()))
            network.scheduler.at(self._last_us, action)

    def _happen(self, action: Callable[[], None]) -> None:
        if not self._is_dead:
            action()

    def _arrive(self, data: bytes, deliver: Callable[[bytes], None]) -> None:
        if not self._is_dead:
            self._network.trace.note(
                self.name, "%d bytes arrive, checksum %08x", len(data), zlib.crc32(data)
            )
            deliver(data)


class Wire:
    """A client's end, a server's end, and a stream each way."""

    def __init__(self, network: Network, name: str, client: End, listener: Listener | None) -> None:
        self.name = name
        self.to_server = Stream(network, f"{name} >")
        self.to_client = Stream(network, f"{name} <")
        self._network = network
        self._listener = listener
        self._client: End | None = client
        self._server: End | None = None

    @property
    def is_abandoned(self) -> bool:
        """Whether the client has given it up."""
        return self._client is None

    def connected(self, server: End) -> None:
        """There is somebody at the other end."""
        self._server = server

    def refuse(self, error: Exception) -> None:
        """Refuse the connection; the client learns of it."""
        self._network.later(partial(self._lose_client, error))

    def client_writes(self, data: bytes) -> None:
        """Bytes for the server."""
        self._write(self.to_server, data, self._to_server)

    def server_writes(self, data: bytes) -> None:
        """Bytes for the client."""
        self._write(self.to_client, data, self._to_client)

    def _write(self, stream: Stream, data: bytes, deliver: Callable[[bytes], None]) -> None:
        network = self._network
        now, chance = network.weather.now, network.chance
        if chance.happens(now.cut):
            kept = chance.below(len(data) + 1)
            network.trace.note(stream.name, "breaks after %d of %d bytes", kept, len(data))
            stream.write(data[:kept], deliver)
            stream.tell(self.cut)
            network.on_broken()
        elif chance.happens(now.stall):
            kept = chance.below(len(data) + 1)
            for_ms = math.inf if chance.happens(_FOR_GOOD) else chance.uniform(*_STALL_MS)
            network.trace.note(
                stream.name, "stalls for %.0f ms after %d of %d bytes", for_ms, kept, len(data)
            )
            stream.write(data[:kept], deliver)
            stream.stall(for_ms, is_full=chance.happens(0.5))
            stream.write(data[kept:], deliver)
        else:
            stream.write(data, deliver)

    def _to_server(self, data: bytes) -> None:
        if self._server is not None:
            self._server.receive(data)
        elif self._listener is not None and self._listener.is_powered:
            # Nobody there knows this connection any more.
            self.to_client.kill()
            self._network.later(partial(self._lose_client, _reset_by_peer()))

    def _to_client(self, data: bytes) -> None:
        if self._client is not None:
            self._client.receive(data)

    def client_closed(self) -> None:
        """The client is done with it; what it wrote last may still arrive."""
        self._client = None
        self.to_client.kill()
        self._close(self.to_server, self._lose_server)

    def server_closed(self) -> None:
        """The server is done with it; what it wrote last may still arrive."""
        self._server = None
        self.to_server.kill()
        self._close(self.to_client, self._lose_client)

    def server_vanished(self) -> None:
        """The server's machine has lost its power: the client hears nothing, until it asks."""
        self._server = None
        self.to_client.kill()

    def _close(self, stream: Stream, lose: Callable[[Exception], None]) -> None:
        hung_up = partial(lose, EOFError("the other side closed the connection"))
        if self._network.chance.happens(0.5):
            stream.tell(hung_up)
        else:
            stream.kill()
            self._network.later(hung_up)

    def cut(self) -> None:
        """Break the connection; both ends learn of it, each in its own time."""
        self.to_server.kill()
        self.to_client.kill()
        self._network.later(partial(self._lose_client, _reset_by_peer()))
        self._network.later(partial(self._lose_server, _reset_by_peer()))

    def _lose_client(self, error: Exception) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.lose(error)

    def _lose_server(self, error: Exception) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.lose(error)


def _reset_by_peer() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
