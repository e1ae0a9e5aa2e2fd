"""Which broker coordinates the group. The I/O thread only.

Everything that talks to the coordinator asks here for the connection, and reports here when it
turns out to be the wrong one, or gone.
"""

import logging
import math
from typing import Protocol

from pyclient.consumer.inbox import Inbox
from pyclient.error_codes import NONE, for_code
from pyclient.errors import KafkaConnectionError, KafkaError, RequestTimedOutError
from pyclient.net.request_manager import (
    NOTHING_TO_DO,
    Outcome,
    PollResult,
    UnsentRequest,
    aside_connection,
    coordinator_connection,
)
from pyclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.timers import ExponentialBackoff
from pyclient.types import BrokerMetadata

log = logging.getLogger(__name__)

_GROUP = 0


class NodeDirectory(Protocol):
    """What the finder uses of the network client."""

    def add_node(self, broker: BrokerMetadata) -> None:
        """Know a node that metadata does not have under this id."""

    def disconnect(self, node: int, now_ms: float) -> None:
        """Close the connection; its requests fail."""

    def in_flight_count(self, node: int) -> int:
        """How many requests are not answered yet."""


class CoordinatorFinder:
    """Finds the group's coordinator, again whenever it is lost.

    Attributes:
        is_held_up: a join or sync is on the connection, which the coordinator may hold back until
            it has heard of all members. Everything behind it waits. Set by the membership.
    """

    def __init__(
        self,
        group_id: str,
        nodes: NodeDirectory,
        backoff: ExponentialBackoff,
        inbox: Inbox,
    ) -> None:
        self._group_id = group_id
        self._nodes = nodes
        self._backoff = backoff
        self._inbox = inbox
        self._connection: int | None = None
        self._address = ""
        self._trouble = "no broker was asked for it yet"
        self._since_ms = 0.0
        self._in_flight = False
        self._wanted = False
        self._failures = 0
        self._retry_at_ms = 0.0
        self.is_held_up = False

    @property
    def connection(self) -> int | None:
        """The node to send group requests to; None while it is being looked for.

        It is a connection of its own: behind a fetch that waits for data, a heartbeat would be
        late.
        """
        return self._connection

    @property
    def free_connection(self) -> int | None:
        """For what must not wait behind a join, nor behind a fetch that waits for data."""
        if self._connection is None or not self.is_held_up:
            return self._connection
        node = coordinator_connection(self._connection)
        return aside_connection(node) if self._nodes.in_flight_count(node) else node

    @property
    def since_ms(self) -> float:
        """Since when it is known, or unknown."""
        return self._since_ms

    @property
    def address(self) -> str | None:
        """The coordinator as in "node 1 (host:9092)"; None while it is unknown. Any thread."""
        return None if self._connection is None else self._address

    def describe(self) -> str:
        """The coordinator, or why it is unknown, for errors and logs. Any thread."""
        if self._connection is not None:
            return f"the coordinator, {self._address},"
        return f"the coordinator of group {self._group_id!r} is unknown: {self._trouble}"

    def want(self) -> int | None:
        """Request a lookup if necessary; returns the connection if the coordinator is known."""
        self._wanted = True
        return self._connection

    def poll(self, now_ms: float) -> PollResult:
        """A FindCoordinator request, if a coordinator is wanted."""
        if self._connection is not None or self._in_flight or not self._wanted:
            return NOTHING_TO_DO
        if now_ms < self._retry_at_ms:
            return PollResult((), self._retry_at_ms)
        self._in_flight = True
        if not self._failures:
            self._trouble = "no broker has answered who it is"
        # A single key, and not a list of them: all versions of brokers can answer that.
        request = FindCoordinatorRequest(key=self._group_id, key_type=_GROUP)
        return PollResult([UnsentRequest(request, None, self._on_done)])

    def close(self, error: KafkaError) -> None:
        """Nothing to do: there are no waiters here."""

    def on_error(self, error: KafkaError, now_ms: float) -> None:
        """A request to the coordinator failed: drop it if the error says that it moved."""
        lost = isinstance(error, KafkaConnectionError | RequestTimedOutError)
        if lost or error.refresh_coordinator:
            self.forget(str(error), now_ms)

    def forget(self, reason: str, now_ms: float) -> None:
        """Drop the coordinator and look it up again, after the back-off."""
        if self._connection is not None:
            log.info("group %s: lost the coordinator: %s", self._group_id, reason)
            self._connection = None
            self._trouble = f"{self._address} was given up: {reason}"
            self._since_ms = now_ms
            self._retry_at_ms = now_ms + self._backoff.backoff_ms(0)

    def reconnect(self, reason: str, now_ms: float) -> None:
        """Close the connection, which may be dead without a sign; keep the coordinator."""
        if self._connection is not None:
            log.info("group %s: reconnecting to %s: %s", self._group_id, self._address, reason)
            self._nodes.disconnect(self._connection, now_ms)

    def _on_done(self, outcome: Outcome, now_ms: float) -> None:
        self._in_flight = False
        if isinstance(outcome, FindCoordinatorResponse) and outcome.error_code != NONE:
            message = outcome.error_message
            error = for_code(outcome.error_code)
            outcome = error(message) if message else error()
        if isinstance(outcome, KafkaError):
            self._on_failure(outcome, now_ms)
            return
        assert isinstance(outcome, FindCoordinatorResponse)
        self._failures = 0
        self._address = f"node {outcome.node_id} ({outcome.host}:{outcome.port})"
        self._since_ms = now_ms
        self._connection = coordinator_connection(outcome.node_id)
        self._nodes.add_node(BrokerMetadata(self._connection, outcome.host, outcome.port))
        log.info("group %s: %s is the coordinator", self._group_id, self._address)

    def _on_failure(self, error: KafkaError, now_ms: float) -> None:
        self._retry_at_ms = now_ms + self._backoff.backoff_ms(self._failures)
        self._failures += 1
        self._trouble = f"finding it failed: {error}"
        if error.retriable:
            log.debug("group %s: finding the coordinator failed: %s", self._group_id, error)
        else:
            self._retry_at_ms = math.inf
            self._inbox.post_error(error, self._on_acknowledged)

    def _on_acknowledged(self) -> None:
        self._retry_at_ms = 0.0
