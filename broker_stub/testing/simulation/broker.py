"""The broker of a simulation: the real core, restarted after each crash.

Used by the scheduler's thread, and by the program that holds the baton.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_stub.config.broker_config import BrokerConfig
from broker_stub.config.listeners import Endpoint
from broker_stub.log.internal_batches import read_log
from broker_stub.metadata.topics import NewTopic
from broker_stub.node import Node
from broker_stub.testing.faults import Faults
from broker_stub.testing.simulation.broker_connection import BrokerConnection, api_key_of
from broker_stub.testing.simulation.broker_life import BrokerLife
from broker_stub.testing.simulation.chance import chance
from broker_stub.testing.simulation.mishaps import Mishaps
from broker_stub.testing.simulation.wire import Wire
from pyclient.errors import BrokerResponseError, IllegalStateError

if TYPE_CHECKING:
    from broker_stub.log.partition_log import PartitionLog
    from broker_stub.testing.simulation.disk import SimulatedDisk
    from broker_stub.testing.simulation.world import Simulation
    from pyclient.records.record import ConsumerRecord

_LISTENER: Final = "PLAINTEXT"
_NODE_ID: Final = 1
_SETUP_MS: Final = 60_000.0


class SimulatedBroker:
    """A one-node broker that can be stopped, killed and restarted.

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
        self.clock = world.machine_clock(self.host)
        self._doubles = world.chance("doubles")
        self.is_powered = True
        self._watchers: list[Callable[[Node], None]] = []
        self._power_watchers: list[Callable[[Node], None]] = []
        self._life: BrokerLife | None = None
        self.life_number = 0
        world.network.listen(self.endpoint.host, self.endpoint.port, self)

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients."""
        return f"{self.endpoint.host}:{self.endpoint.port}"

    @property
    def is_up(self) -> bool:
        """Whether the broker is running."""
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

    # --- life and death ----------------------------------------------------------------------

    def start(self) -> None:
        """Start the broker on the data that is on the disk."""
        if self._life is None:
            self.is_powered = True
            self.life_number += 1
            self.world.trace.note(self.host, "starts")
            self._life = BrokerLife(self, self.life_number)
            self.look()

    def stop(self) -> None:
        """Stop the broker cleanly, as SIGTERM does."""
        self._end("stops", BrokerLife.stop)

    def kill(self) -> None:
        """Kill the broker's process; all written bytes stay."""
        self._end("is killed", BrokerLife.kill)

    def lose_power(self) -> None:
        """Cut the machine's power; unsynced bytes are lost, all or in part."""
        if self._life is not None:
            for watcher in self._power_watchers:
                watcher(self._life.node)
            self._end("loses its power", BrokerLife.lose_power)
            self.is_powered = False
            self.disk.lose_power()

    def _end(self, what: str, how: Callable[[BrokerLife], None]) -> None:
        life, self._life = self._life, None
        if life is not None:
            self.world.trace.note(self.host, what)
            how(life)

    def accept(self, wire: Wire) -> BrokerConnection:
        """A client has connected."""
        assert self._life is not None
        return self._life.accept(wire)

    def maybe_double(self, frame: memoryview) -> None:
        """Perhaps let a request arrive once more, later, maybe in another life of the broker."""
        now = self.world.weather.now
        if self._doubles.happens(now.double) and api_key_of(frame) in now.doubled_apis:
            again = partial(self._arrive_again, bytearray(frame))
            self.world.scheduler.after(self._doubles.uniform(0, now.slow_ms), again)

    def _arrive_again(self, frame: bytearray) -> None:
        if self._life is not None:
            self.world.trace.note(self.host, "gets an old request again")
            self._life.handle_unheard(memoryview(frame))

    # --- for tests ---------------------------------------------------------------------------

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
        """Create a topic, and advance the clock until that is done.

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
