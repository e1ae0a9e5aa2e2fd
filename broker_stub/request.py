"""A request's context, and its reply, now or later.

Plain data between `net`, `dispatch` and the handlers. Serving thread only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from pyclient.protocol.primitives import Part

Answer = TypeVar("Answer")


class Reply(NamedTuple):
    """What is written to a connection.

    Without parts, nothing is. `close` closes the connection once the parts are written.
    """

    parts: list[Part]
    close: bool = False


HANG_UP: Final = Reply([], close=True)


class CloseConnection(Exception):
    """Close the connection without an answer; a handler raises it, the dispatcher logs it."""


class ConnectionContext:
    """The client's end of a connection."""

    __slots__ = ("client_host", "connection_id", "listener")

    def __init__(self, connection_id: str, client_host: str, listener: str = "PLAINTEXT") -> None:
        self.connection_id = connection_id
        self.client_host = client_host
        self.listener = listener


@dataclass(eq=False, slots=True)
class RequestContext:
    """A request's header, and the connection it came on.

    `memo` is for a test's fault injector.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    connection: ConnectionContext
    memo: object = None


class Parked(Generic[Answer]):
    """An answer that comes later; the connection's next request waits behind it.

    A handler returns one, and `answer` is called on it once. If the client disconnects first,
    `on_abandoned` is called, and a later answer is dropped.

    Attributes:
        answered: `answer` was called.
        abandoned: the client disconnected first.
    """

    __slots__ = ("_answer", "_deliver", "abandoned", "answered", "on_abandoned")

    def __init__(self, on_abandoned: Callable[[], None] | None = None) -> None:
        self.on_abandoned = on_abandoned
        self._deliver: Callable[[Answer], None] | None = None
        self._answer: Answer | None = None
        self.answered = False
        self.abandoned = False

    def answer(self, answer: Answer) -> None:
        """Deliver the answer before returning; drop it if the client is gone."""
        if self.abandoned:
            return
        if self.answered:
            raise RuntimeError("a parked request was answered twice")
        self.answered = True
        self._answer = answer
        if self._deliver is not None:
            self._deliver(answer)

    def unwrap(self) -> "Answer | Parked[Answer]":
        """The answer, if it is there already, else this."""
        return self._answer if self.answered else self  # type: ignore[return-value]

    def deliver_to(self, deliver: Callable[[Answer], None]) -> None:
        """Set who gets the answer; calls `deliver` at once if it is there."""
        self._deliver = deliver
        if self.answered:
            deliver(self._answer)  # type: ignore[arg-type]

    def abandon(self) -> None:
        """The client disconnected."""
        if self.answered or self.abandoned:
            return
        self.abandoned = True
        if self.on_abandoned is not None:
            self.on_abandoned()
