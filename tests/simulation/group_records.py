"""The records of a consumer history: written below the broker's validation, so that all is known.

Batches go straight into the logs: data, transactions that were committed or aborted, and control
batches. A topic may be deleted and created again; each creation is a life of its own, and every
value names the life that it belongs to.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from broker_stub.log.internal_batches import build_batch
from broker_stub.metadata.topics import MorePartitions, NewTopic
from broker_stub.testing.delivery_checker import DeliveryChecker
from broker_stub.testing.simulation import Simulation
from broker_stub.testing.simulation.chance import Chance
from pyclient.records.builder import BatchBuilder
from pyclient.records.control import EndTransactionMarker, build_end_transaction_marker
from pyclient.types import TopicPartition

FLEETING = "fleeting"
WRITER = "writer"


class Life(NamedTuple):
    """A partition of one creation of a topic."""

    topic: str
    number: int
    partition: int

    @property
    def key(self) -> TopicPartition:
        """Its name for the delivery checker, which knows nothing of lives."""
        return TopicPartition(f"{self.topic}.{self.number}", self.partition)


@dataclass
class WrittenLog:
    """What is in the log of one life.

    Attributes:
        data: offsets and values that readers get, in order.
        end_offset: behind the last batch.
        unread: the offsets of `data` that no member of the group got yet, and none skipped.
    """

    data: dict[int, bytes] = field(default_factory=dict)
    end_offset: int = 0
    unread: dict[int, None] = field(default_factory=dict)

    @property
    def first_unread(self) -> int | None:
        """The first record that the group has not got."""
        return next(iter(self.unread), None)


class GroupRecords:
    """Topics, and every record that was written to them.

    Attributes:
        logs: what was written, by life.
        lives: the present life of each topic that exists.
    """

    def __init__(
        self, world: Simulation, chance: Chance, checker: DeliveryChecker, is_committed_only: bool
    ) -> None:
        """`is_committed_only`: readers get no aborted records."""
        self._world = world
        self._chance = chance
        self._checker = checker
        self._is_committed_only = is_committed_only
        self.logs: dict[Life, WrittenLog] = {}
        self.lives: dict[str, int] = {}
        self._numbers: dict[bytes, tuple[str, int]] = {}
        self._partitions: dict[str, int] = {}
        self._created: dict[str, int] = {}
        self._count = 0
        self._producers = 0

    # --- topics ------------------------------------------------------------------------------

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic. Not from a program."""
        self._world.broker.create_topic(topic, partitions)
        self._begin(topic, partitions)

    def _begin(self, topic: str, partitions: int) -> None:
        number = self._created.get(topic, 0) + 1
        self._created[topic] = self.lives[topic] = number
        self._partitions[topic] = partitions
        image = self._world.broker.node.image.topic(topic)
        assert image is not None
        self._numbers[image.topic_id] = (topic, number)
        for index in range(partitions):
            self.logs[Life(topic, number, index)] = WrittenLog()

    def recreate(self, topic: str, partitions: int, gap_ms: float) -> None:
        """Delete a topic and create it again, if the broker lives that long. From a program."""
        world = self._world
        if not world.broker.is_up:
            return
        image = world.broker.node.image.topic(topic)
        if image is not None:
            self.lives.pop(topic, None)
            world.note("deletes %s", topic)
            world.broker.node.controller.delete_topics([image.topic_id], lambda _: None)
        world.run_until(lambda: self._is_there(topic) is False, 10_000)
        world.sleep(gap_ms)
        if self._is_there(topic) is False:
            world.note("creates %s again", topic)
            node = world.broker.node
            node.controller.create_topics([NewTopic(topic, partitions=partitions)], lambda _: None)
        world.run_until(lambda: self._is_there(topic) is not False, 10_000)
        self.adopt(topic)

    def grow(self, topic: str) -> None:
        """Add a partition, if the broker lives that long. From a program."""
        world = self._world
        count = self._partitions[topic] + 1
        if world.broker.is_up and topic in self.lives:
            world.note("adds a partition to %s", topic)
            more = MorePartitions(topic, count, None)
            world.broker.node.controller.create_partitions([more], lambda _: None)
            world.run_until(lambda: self._count_of(topic) != count - 1, 10_000)

    def adopt_partitions(self) -> None:
        """Take in what has grown, perhaps only after a crash."""
        for topic, number in self.lives.items():
            for index in range(self._partitions[topic], self._count_of(topic)):
                self.logs[Life(topic, number, index)] = WrittenLog()
                self._partitions[topic] = index + 1

    def _count_of(self, topic: str) -> int:
        """The partitions of a topic as the broker has them; 0 while it is down."""
        broker = self._world.broker
        image = broker.node.image.topic(topic) if broker.is_up else None
        return 0 if image is None else len(image.partitions)

    def adopt(self, topic: str) -> None:
        """A topic may have come that no life was begun for."""
        if topic not in self.lives and self._is_there(topic):
            image = self._world.broker.node.image.topic(topic)
            assert image is not None
            self._begin(topic, len(image.partitions))

    def _is_there(self, topic: str) -> bool | None:
        """Whether the topic exists; None while the broker is down."""
        broker = self._world.broker
        return broker.node.image.topic(topic) is not None if broker.is_up else None

    def partitions(self) -> list[TopicPartition]:
        """The partitions of all topics that exist."""
        return [
            TopicPartition(topic, index)
            for topic in self.lives
            for index in range(self._partitions[topic])
        ]

    def life_of(self, partition: TopicPartition) -> Life | None:
        """The present life of a partition; None if it does not exist, or nothing is known of it."""
        number = self.lives.get(partition.topic, 0)
        life = Life(partition.topic, number, partition.partition)
        return life if life in self.logs else None

    def life_with_id(self, topic_id: bytes, partition: int) -> Life | None:
        """The life of a partition by its topic's id; None if nothing is known of it."""
        life = Life(*self._numbers.get(topic_id, ("", 0)), partition)
        return life if life in self.logs else None

    # --- records -----------------------------------------------------------------------------

    def write_some(self) -> None:
        """Write something to a partition by chance. Does nothing while the broker is down."""
        self.adopt_partitions()
        partitions = self.partitions()
        if partitions and self._world.broker.is_up:
            self.write(self._chance.choice(partitions))

    def write(self, partition: TopicPartition, *, only_data: bool = False) -> None:
        """Write a batch or two."""
        chance = self._chance
        count = chance.choice((1, 1, 2, 5, 20))
        if only_data or chance.happens(0.6):
            values = self._values(partition, count)
            batch = build_batch([(None, one) for one in values], self._now_ms())
            self._append(partition, batch, values)
        elif chance.happens(0.4):
            self._write_marker(partition, 1 << 40, committed=True)
        else:
            self._write_transaction(partition, count, committed=chance.happens(0.4))

    def _write_transaction(self, partition: TopicPartition, count: int, committed: bool) -> None:
        self._producers += 1
        values = self._values(partition, count)
        builder = BatchBuilder(
            bytearray(200 + 120 * count),
            transactional=True,
            producer_id=self._producers,
            producer_epoch=0,
            base_sequence=0,
        )
        for value in values:
            assert builder.try_append(self._now_ms(), None, value) >= 0
        batch = memoryview(b"".join(builder.close()))
        is_read = committed or not self._is_committed_only
        self._append(partition, batch, values, is_read=is_read)
        self._write_marker(partition, self._producers, committed)

    def _write_marker(self, partition: TopicPartition, producer_id: int, committed: bool) -> None:
        marker = build_end_transaction_marker(
            EndTransactionMarker(committed, 0),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp_ms=self._now_ms(),
        )
        self._append(partition, memoryview(marker), [])

    def _append(
        self,
        partition: TopicPartition,
        batch: memoryview,
        values: list[bytes],
        *,
        is_read: bool = True,
    ) -> None:
        node = self._world.broker.node
        life = self.life_of(partition)
        assert life is not None
        log = self.logs[life]
        info = node.replicas.append(node.replicas.partition(*partition), batch)
        self._world.note(
            "writes %d records to %s at %d%s",
            *(len(values), life.key, info.first_offset, "" if is_read else ", aborted"),
        )
        log.end_offset = info.last_offset + 1
        for offset, value in enumerate(values, info.first_offset):
            sent = self._checker.sent(WRITER, value)
            if is_read:
                sent.acked(life.key, offset)
                log.data[offset] = value
                log.unread[offset] = None
            else:
                sent.failed()

    def _values(self, partition: TopicPartition, count: int) -> list[bytes]:
        life = self.life_of(partition)
        assert life is not None
        first, self._count = self._count, self._count + count
        return [
            b"%s/%d/%d/%d" % (life.topic.encode(), life.number, life.partition, number)
            for number in range(first, first + count)
        ]

    def _now_ms(self) -> int:
        return self._world.clock.now_ms()


def life_of_value(value: bytes) -> Life:
    """Where a record was written."""
    topic, number, partition, _ = value.split(b"/")
    return Life(topic.decode(), int(number), int(partition))
