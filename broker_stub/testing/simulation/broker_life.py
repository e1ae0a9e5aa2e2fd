"""One run of a simulated broker: a node, its connections, its timers, its background work.

What `broker_stub.broker` does with threads is done here with events: fsyncs take their time, and
a crash may come between any two events. The scheduler's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from broker_stub.blocking_work import run
from broker_stub.net.receive_buffer import BufferPool
from broker_stub.node import Node
from broker_stub.request import ConnectionContext, Parked
from broker_stub.testing.fault_injector import FaultInjector
from broker_stub.testing.simulation.broker_connection import BrokerConnection
from broker_stub.testing.simulation.chance import chance
from broker_stub.testing.simulation.scheduler import Event
from broker_stub.testing.simulation.wire import Wire

if TYPE_CHECKING:
    from broker_stub.testing.simulation.broker import SimulatedBroker


class BrokerLife:
    """One run of the broker, from a start to the next stop or crash."""

    def __init__(self, broker: SimulatedBroker, number: int) -> None:
        world = broker.world
        self._broker = broker
        self._world = world
        self._is_over = False
        self._connections: dict[BrokerConnection, None] = {}
        self._accepted = 0
        self._work: deque[tuple[Callable[[], None], Callable[[Exception | None], None]]] = deque()
        self._timers_due: Event | None = None
        self._house_due: Event | None = None
        self._chance = chance(world.seed, f"{broker.host} disk {number}")
        self.buffers = BufferPool()
        self.node = Node(
            broker.config,
            [broker.disk.path],
            clock=broker.clock,
            entropy=chance(world.seed, f"{broker.host} {number}"),
            background=self,
            files=broker.disk.files(),
        )
        self.node.open([broker.endpoint])
        self.node.dispatcher.interceptors += [
            FaultInjector(broker.faults, self.node),
            broker.mishaps,
        ]
        self.frame_limit: int = self.node.config["socket.request.max.bytes"]
        self.node.logs.on_work = self._keep_house_soon
        self._keep_house_soon()
        self._arm_timers()

    # --- events ------------------------------------------------------------------------------

    def soon(self, action: Callable[[], None]) -> None:
        """Schedule a call of the node on its simulated thread."""
        self._after(self._world.hesitation_ms(), action)

    def _after(self, delay_ms: float, action: Callable[[], None]) -> Event:
        return self._world.scheduler.after(delay_ms, partial(self._act, action))

    def _act(self, action: Callable[[], None]) -> None:
        if not self._is_over:
            action()
            self._arm_timers()
            self._broker.look()

    def _arm_timers(self) -> None:
        deadline_ms = self.node.timers.next_deadline_ms()
        if self._timers_due is not None:
            self._timers_due.cancel()
        if deadline_ms is not None:
            delay_ms = deadline_ms - self._world.clock.monotonic_ms()
            self._timers_due = self._after(delay_ms, self.node.timers.fire)

    # --- what blocks: the node's background --------------------------------------------------

    def submit(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Run blocking work in order, and call back when it is done."""
        self._work.append((work, done))
        if len(self._work) == 1:
            self._begin_work()

    def _begin_work(self) -> None:
        sync_ms = self._world.weather.now.sync_ms * self._chance.uniform(0.2, 1.8)
        self._after(sync_ms, self._do_work)

    def _do_work(self) -> None:
        work, done = self._work[0]
        # A moment passes before the node hears of it: a crash in between finds it done.
        self.soon(partial(done, run(work)))
        self._work.popleft()
        if self._work:
            self._begin_work()

    def _keep_house_soon(self) -> None:
        self._keep_house_in(self._world.hesitation_ms())

    def _keep_house_in(self, delay_ms: float) -> None:
        if self._house_due is not None:
            self._house_due.cancel()
        self._house_due = self._after(delay_ms, self._keep_house)

    def _keep_house(self) -> None:
        self._keep_house_in(self.node.logs.run_due())

    # --- connections -------------------------------------------------------------------------

    def accept(self, wire: Wire) -> BrokerConnection:
        """A client has connected."""
        self._accepted += 1
        context = ConnectionContext(
            f"{wire.name}-{self._accepted}", "simulated", self._broker.endpoint.listener
        )
        connection = BrokerConnection(self, wire, context)
        self._connections[connection] = None
        return connection

    def maybe_double(self, frame: memoryview) -> None:
        """A request is about to be carried out: it may come again."""
        self._broker.maybe_double(frame)

    def handle_unheard(self, frame: memoryview) -> None:
        """Carry out a request whose client is gone."""
        context = ConnectionContext("again", "simulated", self._broker.endpoint.listener)

        def handle() -> None:
            reply = self.node.handle(frame, context)
            if isinstance(reply, Parked):
                reply.deliver_to(lambda _: None)

        self.soon(handle)

    def forget(self, connection: BrokerConnection) -> None:
        """A connection is gone."""
        self._connections.pop(connection, None)

    # --- the end -----------------------------------------------------------------------------

    def stop(self) -> None:
        """Close all connections and shut down cleanly."""
        self._is_over = True
        for connection in list(self._connections):
            connection.hang_up()
        self.node.close()

    def kill(self) -> None:
        """Close all connections, as the system does for a dead process; write nothing more."""
        self._is_over = True
        for connection in list(self._connections):
            connection.hang_up()
        self.node.abandon()

    def lose_power(self) -> None:
        """End without closing any connection."""
        self._is_over = True
        for connection in list(self._connections):
            connection.vanish()
        self.node.abandon()
