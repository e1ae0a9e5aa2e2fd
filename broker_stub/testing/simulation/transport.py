"""A client's end of a simulated connection: what `pyclient.net.transport` does with a socket.

Parts that were not written yet are referred to and not copied, as a socket would have it: who
reuses a buffer too early sends the wrong bytes here, too. The scheduler's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker_stub.testing.simulation.wire import Wire
from pyclient.errors import InvalidReceiveError
from pyclient.net.frame_reader import FrameReader
from pyclient.net.resolver import Address
from pyclient.protocol.primitives import Part

if TYPE_CHECKING:
    from broker_stub.testing.simulation.environment import SimulatedPoller
    from pyclient.net.connection import Connection


class SimulatedTransport:
    """A client's end of a connection. See `Transport` for what the engine may use."""

    secured = True

    def __init__(self, poller: SimulatedPoller, address: Address, owner: Connection) -> None:
        self.connected = False
        self.error: Exception | None = None
        self.parts_sent = 0
        self.owner = owner
        self._poller = poller
        self._out: deque[Any] = deque()
        self._parts_queued = 0
        self._reader = FrameReader(poller.limit_bytes)
        self._is_closed = False
        host, port = address.target
        self._wire: Wire = poller.network.connect(
            host, port, poller.client_name, self, self._on_connected
        )

    def send(self, parts: Sequence[Part]) -> int:
        """Queue parts for the next poll, and tell how many were ever queued."""
        self._out.extend(parts)
        self._parts_queued += len(parts)
        self._poller.unflushed[self] = None
        return self._parts_queued

    def take_frames(self) -> list[memoryview]:
        """The frames that have arrived since the last call."""
        frames, self._reader.frames = self._reader.frames, []
        return frames

    def close(self) -> None:
        """Let go of all queued parts."""
        self._is_closed = True
        self._out.clear()
        self._wire.client_closed()

    # --- the network's side ------------------------------------------------------------------

    def _on_connected(self) -> None:
        if not self._is_closed:
            self.connected = True
            self._poller.has_news(self)

    def receive(self, data: bytes) -> None:
        view = memoryview(data)
        scratch = self._poller.scratch
        while view and self.error is None:
            target = self._reader.target(scratch)
            count = min(len(target), len(view))
            target[:count] = view[:count]
            view = view[count:]
            try:
                self._reader.received(scratch, count)
            except InvalidReceiveError as error:
                self.error = error
        self._poller.has_news(self)

    def lose(self, error: Exception) -> None:
        """The other end is gone, or the way to it."""
        if not self._is_closed:
            self.error = error
            self._poller.has_news(self)

    # --- the poller's side -------------------------------------------------------------------

    def flush(self) -> bool:
        """Write what the socket takes; False if something is left."""
        out = self._out
        room = self._room(sum(map(len, out)))
        written: list[Any] = []
        while out and room >= len(out[0]):
            room -= len(out[0])
            written.append(out.popleft())
            self.parts_sent += 1
        if out and room:
            written.append(out[0][:room])
            out[0] = memoryview(out[0])[room:]
        if written:
            self._wire.client_writes(b"".join(written))
        return not out

    def _room(self, wanted: int) -> int:
        network = self._poller.network
        if self._wire.to_server.is_full:
            return 0
        if network.chance.happens(network.weather.now.choke):
            return network.chance.below(wanted + 1)
        return wanted

    def on_writable(self) -> None:
        """The socket may take more now."""
        if not self._is_closed and self.error is None:
            self._poller.unflushed[self] = None
            self._poller.has_news(self)
