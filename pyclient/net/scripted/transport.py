"""One connection of the scripted network: a queue each way, cut into frames like a socket's."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyclient.errors import InvalidReceiveError
from pyclient.net.frame_reader import FrameReader
from pyclient.net.scripted.traffic import Traffic
from pyclient.protocol.primitives import Part

if TYPE_CHECKING:
    from pyclient.net.connection import Connection
    from pyclient.net.scripted.broker import ScriptedBroker
    from pyclient.net.scripted.network import ScriptedPoller


class ScriptedTransport:
    """One connection to a scripted broker. See `Transport` for what the engine may use."""

    secured = True

    def __init__(
        self,
        broker: ScriptedBroker | None,
        owner: Connection,
        poller: ScriptedPoller,
        limit_bytes: int,
    ) -> None:
        self.connected = False
        self.error: Exception | None = None
        self.parts_sent = 0
        self.owner = owner
        self.broker = broker
        self.is_closed = False
        self.traffic = Traffic()
        self._poller = poller
        self._incoming: deque[bytes] = deque()  # on their way to the client
        self._queued: list[bytes] = []
        self._parts_queued = 0
        self._half_request = b""
        self._reader = FrameReader(limit_bytes)

    def send(self, parts: Sequence[Part]) -> int:
        """Queue parts for the next poll. They are read only then, as a socket would."""
        self._queued.extend(parts)  # type: ignore[arg-type]
        self._parts_queued += len(parts)
        self._poller.stay_awake()
        return self._parts_queued

    def take_frames(self) -> list[memoryview]:
        """The frames that have arrived since the last call."""
        frames, self._reader.frames = self._reader.frames, []
        return frames

    def close(self) -> None:
        """Let go of all queued parts."""
        self.is_closed = True
        self._queued.clear()
        self._incoming.clear()

    # --- the network's side ------------------------------------------------------------------

    def fail(self, error: Exception) -> None:
        self.error = error
        self._poller.stay_awake()

    def answer(self, data: bytes) -> None:
        """Put bytes on their way to the client."""
        self._incoming.append(self.traffic.let_out(data))
        self._poller.stay_awake()

    def take_requests(self) -> list[bytes]:
        """The request frames written since the last call, without their lengths."""
        if not self._queued or self.broker is None or self.broker.holds_writes:
            return []
        written = self._half_request + self.traffic.take_in(b"".join(self._queued))
        self.parts_sent += len(self._queued)
        self._queued.clear()
        if self.traffic.is_cut:
            self._poller.stay_awake()  # for the client to see it
        requests = []
        while len(written) >= (end := 4 + int.from_bytes(written[:4], "big")) > 4:
            requests.append(written[4:end])
            written = written[end:]
        self._half_request = written
        return requests

    def deliver(self) -> bool:
        """Let what is on its way arrive; whether there was anything."""
        arrived = bool(self._incoming) or self.traffic.is_cut
        scratch = memoryview(bytearray(1 << 16))
        while self._incoming and self.error is None:
            self._deliver_piece(self._incoming.popleft(), scratch)
        if self.traffic.is_cut and self.error is None:
            self.error = EOFError("the other side closed the connection")
        return arrived

    def _deliver_piece(self, data: bytes, scratch: memoryview) -> None:
        while data:
            target = self._reader.target(scratch)
            count = min(len(target), len(data))
            target[:count] = data[:count]
            data = data[count:]
            try:
                self._reader.received(scratch, count)
            except InvalidReceiveError as error:
                self.error = error
                return
