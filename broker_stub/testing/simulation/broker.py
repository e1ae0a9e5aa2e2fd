"""The broker of a world: the real core, fed by the simulated network, disk and clock.

What `broker_stub.server` and `broker_stub.broker` do with sockets and threads is done here with
events: one request at a time, fsyncs that take their time, and crashes between any two events.
The scheduler's thread, but for what a program asks of it while it has the baton.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_stub.background import run
from broker_stub.config import BrokerConfig
from broker_stub.metadata.image import Endpoint
from broker_stub.metadata.topics import NewTopic
from broker_stub.node import Node
from broker_stub.receive_buffer import BufferPool, ReceiveBuffer
from broker_stub.replica.batches import read_log
from broker_stub.request import ConnectionContext, Parked, Reply
from broker_stub.testing.fault_injector import FaultInjector
from broker_stub.testing.faults import Faults
from broker_stub.testing.simulation.chance import chance
from broker_stub.testing.simulation.mishaps import Mishaps
from broker_stub.testing.simulation.wire import Wire
from pyclient.errors import BrokerResponseError, IllegalStateError, ProtocolError

if TYPE_CHECKING:
    from broker_stub.log.partition_log import PartitionLog
    from broker_stub.testing.simulation.disk import SimulatedDisk
    from broker_stub.testing.simulation.scheduler import Event
    from broker_stub.testing.simulation.world import Simulation
    from pyclient.records.record import ConsumerRecord

_LISTENER: Final = "PLAINTEXT"
_NODE_ID: Final = 1
_SETUP_MS: Final = 60_000.0


class BrokerConnection:
    """The broker's end of a connection: bytes in, frames to the node, answers out."""

    def __init__(self, life: _Life, wire: Wire, context: ConnectionContext) -> None:
        self._life = life
        self._wire = wire
        self._context = context
        self._unread: deque[bytes] = deque()
        self._input = ReceiveBuffer(life.buffers, life.frame_limit)
        self._parked: Parked[Reply] | None = None
        self._is_closed = False
        self._is_due = False

    def receive(self, data: bytes) -> None:
        """Bytes have arrived."""
        if not self._is_closed:
            self._unread.append(data)
            self._serve_soon()

    def lose(self, error: Exception) -> None:  # noqa: ARG002  whatever it is, the client is gone
        """The client is gone."""
        if not self._is_closed:
            self._let_go()
            self._life.forget(self)

    def _serve_soon(self) -> None:
        if not self._is_due and self._parked is None:
            self._is_due = True
            self._life.soon(self._serve)

    def _serve(self) -> None:
        """Carry out one request, if there is one."""
        self._is_due = False
        if self._is_closed or self._parked is not None:
            return
        self._read()
        try:
            frame = self._input.next_frame()
        except ProtocolError:
            self.hang_up()
            return
        if frame is None:
            self._input.release()
            return
        reply = self._life.node.handle(frame, self._context)
        if isinstance(reply, Parked):
            self._parked = reply
            reply.deliver_to(self._on_answered)
        else:
            self._answer(reply)

    def _read(self) -> None:
        while self._unread and self._input.has_room:
            data = self._unread.popleft()
            room = self._input.room()
            count = min(len(room), len(data))
            room[:count] = data[:count]
            self._input.received(count)
            if count < len(data):
                self._unread.appendleft(data[count:])

    def _on_answered(self, reply: Reply) -> None:
        self._parked = None
        self._answer(reply)

    def _answer(self, reply: Reply) -> None:
        data = b"".join(_bytes_of(part) for part in reply.parts)
        if data:
            self._wire.server_writes(data)
        if reply.close:
            self.hang_up()
        else:
            self._serve_soon()

    def hang_up(self) -> None:
        """Close the connection."""
        self._let_go()
        self._life.forget(self)
        self._wire.server_closed()

    def vanish(self) -> None:
        """The power is gone."""
        self._let_go()
        self._wire.server_vanished()

    def _let_go(self) -> None:
        self._is_closed = True
        self._input.discard()
        self._unread.clear()
        if self._parked is not None:
            self._parked.abandon()


def _bytes_of(part: Any) -> bytes:
    read: Callable[[], bytes] | None = getattr(part, "read", None)  # a range of a file
    return bytes(part) if read is None else read()


class _Life:
    """One life of the broker, from a start to the next stop or crash."""

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
            clock=world.clock,
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

    # Events

    def soon(self, action: Callable[[], None]) -> None:
        """Have the node do something, when its thread gets to it."""
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

    # What blocks: the node's background

    def submit(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Do blocking work, one after another, and tell when it is done."""
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

    # Connections

    def accept(self, wire: Wire) -> BrokerConnection:
        self._accepted += 1
        context = ConnectionContext(f"{wire.name}-{self._accepted}", "simulated", _LISTENER)
        connection = BrokerConnection(self, wire, context)
        self._connections[connection] = None
        return connection

    def forget(self, connection: BrokerConnection) -> None:
        self._connections.pop(connection, None)

    # The end

    def stop(self) -> None:
        self._is_over = True
        for connection in list(self._connections):
            connection.hang_up()
        self.node.close()

    def kill(self) -> None:
        self._is_over = True
        for connection in list(self._connections):
            connection.hang_up()
        self.node.abandon()

    def lose_power(self) -> None:
        self._is_over = True
        for connection in list(self._connections):
            connection.vanish()
        self.node.abandon()


class SimulatedBroker:
    """A one-node broker, over its crashes.

    Attributes:
        faults: makes requests fail, late or unanswered: see `broker_stub.testing.faults`.
        is_powered: whether its machine runs, with the broker or without.
        life_number: how often it was started.
    """

    def __init__(
        self, world: Simulation, disk: SimulatedDisk, config: Mapping[str, object] | None
    ) -> None:
        self.world = world
        self.disk = disk
        self.config = BrokerConfig({"node.id": _NODE_ID, **(config or {})})
        self.endpoint = Endpoint(_LISTENER, "broker-1", 9092)
        self.host = self.endpoint.host
        self.faults = Faults()
        self.mishaps = Mishaps(self.host, chance(world.seed, "mishaps"), world.trace, world.weather)
        self.is_powered = True
        self._watchers: list[Callable[[Node], None]] = []
        self._power_watchers: list[Callable[[Node], None]] = []
        self._life: _Life | None = None
        self.life_number = 0
        world.network.listen(self.endpoint.host, self.endpoint.port, self)

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients."""
        return f"{self.endpoint.host}:{self.endpoint.port}"

    @property
    def is_up(self) -> bool:
        """Whether it serves."""
        return self._life is not None

    @property
    def node(self) -> Node:
        """The core, for tests that look closely; another one after every crash.

        Raises:
            IllegalStateError: the broker is down.
        """
        if self._life is None:
            raise IllegalStateError("the broker is down")
        return self._life.node

    # Life and death

    def start(self) -> None:
        """Begin to serve, with what is on the disk."""
        if self._life is None:
            self.is_powered = True
            self.life_number += 1
            self.world.trace.note(self.host, "starts")
            self._life = _Life(self, self.life_number)
            self.look()

    def stop(self) -> None:
        """Stop cleanly."""
        self._end("stops", _Life.stop)

    def kill(self) -> None:
        """Die as a killed process does: what was written stays written."""
        self._end("is killed", _Life.kill)

    def lose_power(self) -> None:
        """Die with the machine: what was not synced is gone, or parts of it."""
        if self._life is not None:
            for watcher in self._power_watchers:
                watcher(self._life.node)
            self._end("loses its power", _Life.lose_power)
            self.is_powered = False
            self.disk.lose_power()

    def _end(self, what: str, how: Callable[[_Life], None]) -> None:
        life, self._life = self._life, None
        if life is not None:
            self.world.trace.note(self.host, what)
            how(life)

    def accept(self, wire: Wire) -> BrokerConnection:
        """A client has connected."""
        assert self._life is not None
        return self._life.accept(wire)

    # For tests

    def watch(self, watcher: Callable[[Node], None]) -> None:
        """Show the node to `watcher` after everything that it does, from now on."""
        self._watchers.append(watcher)

    def before_power_loss(self, watcher: Callable[[Node], None]) -> None:
        """Show the node to `watcher` before each power loss: what is not synced is still there."""
        self._power_watchers.append(watcher)

    def look(self) -> None:
        """The node has done something."""
        if self._life is not None:
            for watcher in self._watchers:
                watcher(self._life.node)

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic, and let so much time pass as that takes.

        Raises:
            BrokerResponseError: as the broker would answer a client.
        """
        configs = {key: str(value) for key, value in (config or {}).items()}
        topic = NewTopic(name, partitions=partitions, configs=configs)
        done: list[Any] = []
        self.node.controller.create_topics([topic], done.extend)
        self.world.run_until(lambda: bool(done), _SETUP_MS)
        if isinstance(done[0], BrokerResponseError):
            raise done[0]

    def records(self, topic: str) -> list[ConsumerRecord]:
        """All records of a topic as they are in its logs, by partition and offset."""
        image = self.node.image.topic(topic)
        if image is None:
            raise IllegalStateError(f"there is no topic {topic!r}")
        return [
            record
            for index in sorted(image.partitions)
            for record in read_log(self.log(topic, index))
        ]

    def log(self, topic: str, partition: int) -> PartitionLog:
        """The log of a partition."""
        return self.node.replicas.partition(topic, partition).log
