"""The interface between the I/O thread and the managers that it polls.

A request manager is sans-IO: it is polled with the time, returns the requests it wants sent and
when it wants to be polled again, and is told each outcome by the request's `on_done`. It never
waits, reads a clock or touches a socket. Everything here runs on the I/O thread.

Times are monotonic milliseconds, as `Clock.monotonic_ms` counts them.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from pyclient.errors import KafkaError
from pyclient.protocol.schema import Message

Outcome: TypeAlias = Message | KafkaError
OnDone: TypeAlias = Callable[[Outcome, float], None]

# A consumer talks to its coordinator on a connection of its own, because a broker answers in
# order and a fetch may wait there for half a second. Kafka's clients count such nodes down from
# the largest id, and so do we.
_COORDINATOR_IDS_FROM = 2**31 - 1
_ASIDE_IDS_FROM = 2**31  # no broker has such an id: they are 32-bit integers


def coordinator_connection(node_id: int) -> int:
    """The id of the second connection to a broker, for its role as a coordinator."""
    return _COORDINATOR_IDS_FROM - node_id


def aside_connection(node_id: int) -> int:
    """The id of a third connection to a broker, for fetches beside one that waits for data."""
    return _ASIDE_IDS_FROM + node_id


def broker_of_connection(node_id: int) -> int:
    """The broker that a second or third connection leads to."""
    if node_id >= _ASIDE_IDS_FROM:
        return node_id - _ASIDE_IDS_FROM
    return _COORDINATOR_IDS_FROM - node_id


class UnsentRequest:
    """A request that a manager wants sent.

    Attributes:
        request: the message; the connection picks the version.
        node: the broker's id; None for the least loaded one.
        on_done: called exactly once on the I/O thread with the response, or with the error
            that took its place, and the time. When it runs, the network no longer refers to
            the request's buffers. It must not block; an exception is logged and goes nowhere.
        timeout_ms: from now to the response, the wait for a connection included; None for
            `request.timeout.ms`.
        expects_response: False for a Produce request with acks=0, which gets none: `on_done`
            then receives an empty response as soon as the bytes have left.
    """

    __slots__ = ("expects_response", "node", "on_done", "request", "timeout_ms")

    def __init__(
        self,
        request: Message,
        node: int | None,
        on_done: OnDone,
        timeout_ms: float | None = None,
        expects_response: bool = True,
    ) -> None:
        self.request = request
        self.node = node
        self.on_done = on_done
        self.timeout_ms = timeout_ms
        self.expects_response = expects_response

    def __repr__(self) -> str:
        target = "the least loaded node" if self.node is None else f"node {self.node}"
        return f"<{type(self.request).__name__} to {target}>"


class PollResult(NamedTuple):
    """What a manager wants: requests sent now, and to be polled again.

    `next_poll_ms` is a point in time, not a span: the latest moment for the next poll. Infinity
    means not before something happens. Every event (a response, a connection that opened or
    broke, a command, a wake-up) polls all managers again, so only time itself has to be named.
    """

    requests: Sequence[UnsentRequest] = ()
    next_poll_ms: float = math.inf


NOTHING_TO_DO = PollResult()


class RequestManager(Protocol):
    """A manager that the I/O thread polls on every turn."""

    def poll(self, now_ms: float) -> PollResult:
        """The requests to send now. Called on every turn of the loop, so it has to be cheap."""

    def close(self, error: KafkaError) -> None:
        """The loop has ended: fail what still waits with `error`.

        Called once, as the last thing on the I/O thread, after every request's `on_done`.
        """
