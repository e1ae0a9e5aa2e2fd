"""All connections of a client: the known nodes, which of them can take a request, and timeouts.

Sans-IO like its connections: the time is an argument, sockets are behind the poller. Used by the
I/O thread only. Callbacks run last, after the state of every connection is updated.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pyclient.entropy import Entropy
from pyclient.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    SslAuthenticationError,
)
from pyclient.net.broker_versions import BrokerVersions
from pyclient.net.connection import Connection, ConnectionSettings, Finished
from pyclient.net.in_flight_requests import InFlightRequest
from pyclient.net.poller import Poller, Transport
from pyclient.net.request_manager import UnsentRequest, broker_of_connection
from pyclient.types import BrokerMetadata

log = logging.getLogger(__name__)

# When any node will do, a connection that takes longer than this is not waited for: another
# node is tried beside it. So one dead host among the bootstrap servers costs a second, not ten.
_CONNECT_PATIENCE_MS: Final = 1_000


class NetworkClient:
    """The nodes of a cluster and the connections to them.

    Attributes:
        next_deadline_ms: nothing falls due before it. A lower bound, so that finishing a
            request needs no search for the next deadline.
        on_disconnect: called when a connection broke or could not be made.
    """

    def __init__(
        self,
        bootstrap: Sequence[tuple[str, int]],
        settings: ConnectionSettings,
        poller: Poller,
        entropy: Entropy,
        *,
        request_timeout_ms: float,
        connections_max_idle_ms: float,
        rebootstrap: bool = True,
    ) -> None:
        # Bootstrap nodes count down from -1, as in Kafka: their ids are not known yet.
        self._bootstrap = {
            -position: BrokerMetadata(-position, host, port)
            for position, (host, port) in enumerate(bootstrap, start=1)
        }
        self._brokers: dict[int, BrokerMetadata] = {}  # of the metadata
        self._extra: dict[int, BrokerMetadata] = {}  # added by `add_node`
        self._candidates = list(self._bootstrap)  # for requests that any node may serve
        self._connections: dict[int, Connection] = {}
        self._resolving: list[Connection] = []
        self._unassigned: deque[InFlightRequest] = deque()
        self._finished: deque[Finished] = deque()
        self._settings = settings
        self._poller = poller
        self._entropy = entropy
        self._request_timeout_ms = request_timeout_ms
        self._connections_max_idle_ms = connections_max_idle_ms
        self._rebootstraps = rebootstrap
        self.next_deadline_ms = math.inf
        self.on_disconnect: Callable[[], None] = lambda: None

    # --- nodes -------------------------------------------------------------------------------

    def set_brokers(self, brokers: Iterable[BrokerMetadata], now_ms: float) -> None:
        """Use the brokers of new metadata. Connections to removed nodes close when unused."""
        self._brokers = {one.node_id: one for one in brokers}
        self._candidates = list(self._brokers or self._bootstrap)
        for node, connection in self._connections.items():
            address = self._address(node)
            if address is not None:
                connection.broker = address
        self._close_unknown(now_ms)

    def add_node(self, broker: BrokerMetadata) -> None:
        """Make a node known under an id that the metadata does not have."""
        self._extra[broker.node_id] = broker
        connection = self._connections.get(broker.node_id)
        if connection is not None:
            connection.broker = broker

    def rebootstrap(self) -> None:
        """Use only the bootstrap servers until the next metadata response."""
        if self._rebootstraps:
            log.warning("Starting again from the bootstrap servers")
            self._candidates = list(self._bootstrap)

    def _add_bootstrap_servers(self) -> bool:
        """Ask the bootstrap servers too, because none of the brokers can be reached.

        The brokers stay, because they may be back before an outdated bootstrap server. Returns
        whether there were any to add.
        """
        if not self._rebootstraps or any(node in self._bootstrap for node in self._candidates):
            return False
        log.warning("No known broker can be reached: asking the bootstrap servers again")
        self._candidates += list(self._bootstrap)
        return True

    def _address(self, node: int) -> BrokerMetadata | None:
        own = self._brokers.get(node) or self._extra.get(node)
        if own is not None:
            return own
        broker = self._brokers.get(broker_of_connection(node))
        if broker is not None:
            return broker._replace(node_id=node)
        return self._bootstrap.get(node) if node in self._candidates else None

    def _connection(self, node: int) -> Connection | None:
        connection = self._connections.get(node)
        if connection is None:
            address = self._address(node)
            if address is None:
                return None
            connection = Connection(address, self._settings, self._poller, self._finished)
            self._connections[node] = connection
        return connection

    # --- questions ---------------------------------------------------------------------------

    def is_ready(self, node: int, now_ms: float) -> bool:
        """Whether a node can take a request now. Does not connect: see `ready`."""
        connection = self._connections.get(node)
        return connection is not None and connection.can_send(now_ms) and not connection.queue

    def ready_at_ms(self, node: int, now_ms: float) -> float:
        """When to call `ready` again; infinity if a network event will make the node ready."""
        connection = self._connections.get(node)
        if connection is None:
            return math.inf
        if connection.is_disconnected:
            return max(connection.reconnect.retry_at_ms, now_ms)
        return connection.muted_until_ms if connection.muted_until_ms > now_ms else math.inf

    def versions_of(self, node: int) -> BrokerVersions | None:
        """What a node serves; None while there is no connection to it."""
        connection = self._connections.get(node)
        return connection.versions if connection is not None and connection.is_ready else None

    def in_flight_count(self, node: int | None = None) -> int:
        """How many requests wait for their response, of one node or of all."""
        if node is not None:
            connection = self._connections.get(node)
            return 0 if connection is None else len(connection.in_flight)
        return sum(len(one.in_flight) for one in self._connections.values())

    def least_loaded_node(self, now_ms: float) -> int | None:
        """The best node for a request that any node can serve; None if none is ready."""
        connection = self._least_loaded(now_ms)
        return None if connection is None else connection.broker.node_id

    def troubles(self, now_ms: float) -> list[str]:
        """Why the candidate nodes cannot be used. Any thread."""
        troubles = []
        for node in list(self._candidates):
            connection = self._connections.get(node)
            trouble = None if connection is None else connection.trouble(now_ms)
            if trouble is not None:
                troubles.append(str(trouble))
        return list(dict.fromkeys(troubles))  # a bootstrap server may be a known node, too

    def is_refused_everywhere(self) -> bool:
        """Whether TLS fails with every node that would serve any request. Any thread."""
        connections = [self._connections.get(node) for node in list(self._candidates)]
        return all(
            one is not None and isinstance(one.last_failure, SslAuthenticationError)
            for one in connections
        )

    # --- requests ----------------------------------------------------------------------------

    def ready(self, node: int, now_ms: float) -> bool:
        """Connect to a node if need be; returns whether it can take a request now."""
        if self.is_ready(node, now_ms):
            return True
        connection = self._connection(node)
        if connection is not None and connection.is_disconnected:
            self._connect(connection, now_ms)
        return False

    def send(self, unsent: UnsentRequest, now_ms: float) -> None:
        """Send a request as soon as its node is ready."""
        timeout_ms = self._request_timeout_ms if unsent.timeout_ms is None else unsent.timeout_ms
        entry = InFlightRequest(unsent, now_ms + timeout_ms)
        self._due_at(entry.deadline_ms)
        if unsent.node is None:
            self._unassigned.append(entry)
            self._assign(now_ms)
            return
        connection = self._connection(unsent.node)
        if connection is None:
            text = f"{unsent!r} was not sent: the cluster's metadata has no such node"
            self._finish(unsent, KafkaConnectionError(text))
            self._due_at(now_ms)
        elif connection.can_send(now_ms) and not connection.queue:
            self._transmit(connection, entry, now_ms)
        else:
            connection.queue.append(entry)
            self._see_to_queue(connection, now_ms)

    def disconnect(self, node: int, now_ms: float) -> None:
        """Close the connection to a node; its requests in flight fail."""
        connection = self._connections.get(node)
        if connection is not None and not connection.is_disconnected:
            connection.lose(
                KafkaConnectionError(f"{connection.where}: the client closed the connection"),
                now_ms,
            )
            self._due_at(now_ms)

    def close(self, error: KafkaError, now_ms: float) -> None:
        """End all connections; every request that is not finished fails with `error`."""
        for connection in self._connections.values():
            connection.close(error, now_ms)
        while self._unassigned:
            self._finish(self._unassigned.popleft().unsent, error)
        self._call_back(now_ms)

    # --- turns of the loop -------------------------------------------------------------------

    def on_events(self, news: Sequence[Transport], now_ms: float) -> None:
        """Handle what the poller reports, time out what is due, and call back."""
        for transport in news:
            connection = transport.owner
            if connection.transport is transport:
                self._advance(connection, connection.on_event, now_ms)
        if self._resolving:
            resolving, self._resolving = self._resolving, []
            for connection in resolving:
                self._advance(connection, connection.continue_resolving, now_ms)
        if now_ms >= self.next_deadline_ms:
            self._on_time(now_ms)
        if self._unassigned:
            self._assign(now_ms)
        self._call_back(now_ms)

    def _call_back(self, now_ms: float) -> None:
        while self._finished:
            on_done, outcome = self._finished.popleft()
            try:
                on_done(outcome, now_ms)
            except Exception:
                log.exception("The callback of a finished request raised an exception")

    def _on_time(self, now_ms: float) -> None:
        self.next_deadline_ms = math.inf
        for connection in self._connections.values():
            self._advance(connection, connection.on_time, now_ms)
            idle_at_ms = connection.last_used_ms + self._connections_max_idle_ms
            if connection.is_ready and not connection.is_in_use:
                if idle_at_ms <= now_ms:
                    log.debug("Closing the idle connection to %s", connection.where)
                    connection.disconnect(now_ms)
                else:
                    self._due_at(idle_at_ms)
            self._due_at(connection.next_deadline_ms())
        for entry in [one for one in self._unassigned if one.deadline_ms <= now_ms]:
            self._unassigned.remove(entry)
            reasons = "; ".join(self.troubles(now_ms)) or "all brokers are busy"
            text = f"{entry.unsent!r} could not be sent in time: {reasons}"
            self._finish(entry.unsent, KafkaTimeoutError(text))
        for entry in self._unassigned:
            self._due_at(entry.deadline_ms)
        self._close_unknown(now_ms)

    def _advance(
        self, connection: Connection, step: Callable[[float], None], now_ms: float
    ) -> None:
        """Let a connection take a step, then follow up on what that changed."""
        was_connected = not connection.is_disconnected
        step(now_ms)
        if connection.is_resolving and connection not in self._resolving:
            self._resolving.append(connection)
        if connection.is_disconnected and was_connected:
            self.on_disconnect()
        self._due_at(connection.setup_deadline_ms)
        if connection.queue:
            self._see_to_queue(connection, now_ms)

    def _see_to_queue(self, connection: Connection, now_ms: float) -> None:
        if connection.is_disconnected:
            self._connect(connection, now_ms)
        while connection.queue and connection.can_send(now_ms):
            self._transmit(connection, connection.queue.popleft(), now_ms)
        if connection.queue and connection.muted_until_ms > now_ms:
            self._due_at(connection.muted_until_ms)

    def _connect(self, connection: Connection, now_ms: float) -> None:
        if connection.reconnect.retry_at_ms <= now_ms:
            self._advance(connection, connection.connect, now_ms)
        else:
            self._due_at(connection.reconnect.retry_at_ms)

    def _transmit(self, connection: Connection, entry: InFlightRequest, now_ms: float) -> None:
        connection.transmit(entry, now_ms)
        if self._finished or connection.unanswered:
            # It could not be encoded, or expects no response: call back in this turn.
            self._due_at(now_ms)

    def _assign(self, now_ms: float) -> None:
        """Give requests that any node may serve to the least loaded one."""
        while self._unassigned:
            connection = self._least_loaded(now_ms)
            if connection is None:
                self._reach_any_node(now_ms)
                return
            self._transmit(connection, self._unassigned.popleft(), now_ms)

    def _least_loaded(self, now_ms: float) -> Connection | None:
        usable = [
            connection
            for node in self._candidates
            if (connection := self._connections.get(node)) is not None
            and connection.can_send(now_ms)
            and not connection.queue
        ]
        return min(usable, key=lambda one: len(one.in_flight), default=None)

    def _reach_any_node(self, now_ms: float) -> None:
        """No node can take a request: connect to one more, if there is one to try."""
        connections = [
            connection
            for node in self._entropy.shuffled(self._candidates)
            if (connection := self._connection(node)) is not None
        ]
        muted = [one for one in connections if one.is_ready and one.muted_until_ms > now_ms]
        if muted:
            self._due_at(min(one.muted_until_ms for one in muted))
        if any(one.is_ready and one not in muted for one in connections):
            return  # busy; a response will make room
        patience_ms = [
            one.setup_began_ms + _CONNECT_PATIENCE_MS
            for one in connections
            if not one.is_ready and not one.is_disconnected
        ]
        if any(until_ms > now_ms for until_ms in patience_ms):
            self._due_at(min(until_ms for until_ms in patience_ms if until_ms > now_ms))
            return
        resting = [one for one in connections if one.is_disconnected]
        if not resting:
            return
        next_one = min(resting, key=lambda one: one.reconnect.retry_at_ms)
        all_failed = not muted and all(one.reconnect.failures for one in resting)
        if all_failed and next_one.reconnect.retry_at_ms > now_ms and self._add_bootstrap_servers():
            self._reach_any_node(now_ms)
        else:
            self._connect(next_one, now_ms)
            if not next_one.is_disconnected:
                self._due_at(now_ms + _CONNECT_PATIENCE_MS)

    def _close_unknown(self, now_ms: float) -> None:
        for node, connection in list(self._connections.items()):
            if not connection.is_in_use and self._address(node) is None:
                connection.close(KafkaConnectionError("the node left the cluster"), now_ms)
                del self._connections[node]

    def _finish(self, unsent: UnsentRequest, error: KafkaError) -> None:
        self._finished.append(Finished(unsent.on_done, error))

    def _due_at(self, time_ms: float) -> None:
        if time_ms < self.next_deadline_ms:
            self.next_deadline_ms = time_ms
