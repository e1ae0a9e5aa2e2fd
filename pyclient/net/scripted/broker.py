"""A broker that answers by script."""

import errno
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeAlias, TypeVar, cast

from pyclient.net.scripted.traffic import Traffic
from pyclient.net.scripted.transport import ScriptedTransport
from pyclient.protocol.frame import response_frame
from pyclient.protocol.header import RequestHeader, request_header_version
from pyclient.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from pyclient.protocol.registry import API_NAMES, request_class
from pyclient.protocol.schema import Message


class _Hangup:
    """The answer that is none: the broker closes the connection."""


DISCONNECT: Final = _Hangup()

# What a broker does with a request: answer, answer nothing (None), answer raw bytes in place of
# a frame, or hang up.
Answer: TypeAlias = Message | bytes | _Hangup | None
Handler: TypeAlias = Callable[[Message, int], Answer]
Request = TypeVar("Request", bound=Message)
# Changes a response on its way out: the request that it answers, and its bytes with their length.
# None swallows it.
Tamper: TypeAlias = Callable[[Message, bytes], bytes | None]


class BrokersEnd(Protocol):
    """A connection as the broker sees it."""

    def answer(self, data: bytes) -> None:
        """Put bytes on their way to the client."""

    def fail(self, error: Exception) -> None:
        """Break the connection; the client sees this error."""


class ScriptedBroker:
    """A broker that answers by script.

    Attributes:
        holds_writes: the socket is full: nothing that a client writes leaves it.
        versions: what it says it serves: (lowest, highest) by API key.
        features: the finalized features that it reports, as in `transaction.version`: 2.
        traffic: the bytes of every connection there ever was, oldest first.
        tamper: changes what it sends, if there is one.
    """

    def __init__(self, node_id: int, host: str, port: int) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.holds_writes = False
        self.versions = {
            key: (request_class(key).stable.lowest, request_class(key).stable.highest)
            for key in API_NAMES
        }
        self.features: dict[str, int] = {}
        self.connections: list[ScriptedTransport] = []
        self.attempts = 0
        self.traffic: list[Traffic] = []
        self.tamper: Tamper | None = None
        self._cuts: dict[int, tuple[float, float]] = {}
        self._refuses: OSError | None = None
        self._silent = False
        self._handlers: dict[type[Message], Handler] = {}
        self._received: defaultdict[type[Message], list[Message]] = defaultdict(list)

    def on(self, request: type[Message], answers: Handler | Answer | Iterable[Answer]) -> None:
        """Say what a kind of request gets.

        `answers` is a function of the request and its version, one answer for all, or several
        in turn, of which the last one stays.
        """
        if callable(answers):
            self._handlers[request] = answers
        elif isinstance(answers, Message | bytes | _Hangup) or answers is None:
            self._handlers[request] = lambda _request, _version: answers
        else:
            sequence = _last_one_stays(answers)
            self._handlers[request] = lambda _request, _version: next(sequence)

    def received(self, request: type[Request]) -> list[Request]:
        """The requests of one kind that have come in, oldest first."""
        return cast(list[Request], self._received[request])

    def refuse_connections(self, code: int = errno.ECONNREFUSED) -> None:
        """Break the connections there are, and refuse new ones."""
        self._refuses = OSError(code, os.strerror(code))
        self.cut()

    def ignore_connections(self) -> None:
        """Leave new connections unanswered, as a firewall does."""
        self._silent = True

    def accept_connections(self) -> None:
        """Accept connections again."""
        self._refuses = None
        self._silent = False

    def cut_connection(
        self, number: int, *, received_max: float = math.inf, sent_max: float = math.inf
    ) -> None:
        """Cut one connection, counted from 0, after this many bytes in either direction."""
        self._cuts[number] = (received_max, sent_max)

    def cut(self) -> None:
        for connection in self.connections:
            connection.fail(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))
        self.connections.clear()

    def send_raw(self, data: bytes) -> None:
        """Send bytes on every connection, out of turn."""
        for connection in self.connections:
            connection.answer(data)

    # --- the network's side ------------------------------------------------------------------

    def new_traffic(self) -> Traffic:
        """Count the bytes of a new connection, and cut it where the script says."""
        self.traffic.append(Traffic(*self._cuts.get(len(self.traffic), ())))
        return self.traffic[-1]

    def advance_connection(self, transport: ScriptedTransport) -> bool:
        """Let an attempt to connect come to its end; whether it did."""
        if self._silent:
            return False
        self.attempts += 1
        if self._refuses is not None:
            transport.error = self._refuses
        else:
            transport.connected = True
            transport.traffic = self.new_traffic()
            self.connections.append(transport)
        return True

    def serve(self, transport: BrokersEnd, frame: bytes) -> None:
        """Take a request and send what the script says."""
        api_key = int.from_bytes(frame[0:2], "big")
        version = int.from_bytes(frame[2:4], "big")
        cls = request_class(api_key)
        header, position = RequestHeader.decode_from(frame, 0, request_header_version(cls, version))
        request = cls.decode(frame[position:], version)
        self._received[cls].append(request)
        handler = self._handlers.get(cls)
        if handler is None:
            raise AssertionError(f"{self!r} has no answer to {request!r}")
        answer = handler(request, version)
        if isinstance(answer, _Hangup):
            transport.fail(EOFError("the other side closed the connection"))
        elif isinstance(answer, bytes):
            transport.answer(answer)
        elif answer is not None:
            parts = response_frame(answer, version, header.correlation_id)
            data: bytes | None = b"".join(cast(list[bytes], parts))
            if self.tamper is not None:
                data = self.tamper(request, cast(bytes, data))
            if data is not None:
                transport.answer(data)

    def api_versions(self, _request: Message, _version: int) -> ApiVersionsResponse:
        """The ApiVersions response that this broker gives."""
        keys = [
            ApiVersion(api_key=key, min_version=lowest, max_version=highest)
            for key, (lowest, highest) in self.versions.items()
        ]
        features = [
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in self.features.items()
        ]
        return ApiVersionsResponse(api_keys=keys, finalized_features=features)

    def __repr__(self) -> str:
        return f"<broker {self.node_id} at {self.host}:{self.port}>"


def _last_one_stays(answers: Iterable[Answer]) -> Iterator[Answer]:
    answer: Answer = None
    for answer in answers:
        yield answer
    while True:
        yield answer
