"""A history of the producer: programs send records under all that can go wrong.

Afterwards every acknowledged record is in its log, once and in order; every other one failed
with an error that fits; and all memory is back. `DeliveryChecker` has the rules of the records.
"""

import math
from contextlib import suppress
from typing import Any

from broker_stub.log.internal_batches import read_log
from broker_stub.node import Node
from broker_stub.testing.delivery_checker import DeliveryChecker, Sent
from broker_stub.testing.simulation import Simulation
from broker_stub.testing.simulation.chance import Chance
from pyclient import KafkaAdminClient, KafkaProducer
from pyclient.errors import (
    BufferExhaustedError,
    Cancelled,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    TopicAuthorizationError,
)
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.types import TopicPartition

TOPIC = "orders"
PROGRAMS = 2
PRODUCERS = 2
RECORDS = 40
# Longer than any message is under way: what was given up long ago may still be written until then.
SETTLED_MS = 120_000
LATE_MS = 10

Log = list[tuple[int, bytes]]


class Sending:
    """One record of a producer, and when it was sent and had its outcome."""

    def __init__(self, world: Simulation, sent: Sent, future: FutureRecordMetadata) -> None:
        self.sent = sent
        self.future = future
        self.sent_ms = world.clock.monotonic_ms()
        self.done_ms = math.inf
        self._world = world
        future.add_both(self._on_done)

    def _on_done(self, _outcome: object) -> None:
        self.done_ms = self._world.clock.monotonic_ms()


class ProducerWorld:
    """A world with a topic, and all that is known of its records.

    Attributes:
        expected_errors: how records may fail, beside running out of time.
    """

    def __init__(self, world: Simulation) -> None:
        self.world = world
        self.checker = DeliveryChecker()
        self.expected_errors: set[type[KafkaError]] = set()
        self._is_synced = False
        self._before: dict[TopicPartition, Log] | None = None
        self._create_topic(world.chance("topic"))
        self._order_refusals(world.chance("refusals"))
        world.broker.before_power_loss(self._note_logs)
        world.broker.watch(self._look)

    def _create_topic(self, chance: Chance) -> None:
        config: dict[str, object] = {"segment.bytes": chance.choice((17_000, 1 << 30))}
        if chance.happens(0.5):
            self._is_synced = True
            config["flush.messages"] = 1
        if chance.happens(0.25):
            self.expected_errors.add(RecordTooLargeError)
            config["max.message.bytes"] = 350
        self.world.broker.create_topic(TOPIC, chance.choice((1, 1, 3)), config)

    def _order_refusals(self, chance: Chance) -> None:
        if chance.happens(0.25):
            self.expected_errors.add(TopicAuthorizationError)
            self.world.broker.faults.fail_randomly(
                ProduceRequest, TopicAuthorizationError, 0.05, seed=chance.below(1 << 32)
            )

    def _note_logs(self, node: Node) -> None:
        self._before = _logs(node)

    def _look(self, node: Node) -> None:
        """Called after a power loss: note what is left."""
        before, self._before = self._before, None
        if before is not None:
            after = _logs(node)
            for partition, records in before.items():
                # Where every ack waits for the disk, a loss excuses nothing.
                self.checker.power_lost(
                    partition, () if self._is_synced else records, after.get(partition, [])
                )
            if not self._is_synced and after != before:
                # Acked records are gone: one before them that is sent again fits in nowhere.
                self.expected_errors.add(OutOfOrderSequenceError)

    def check(self) -> None:
        """Judge, when nothing is under way any more."""
        for partition, records in _logs(self.world.broker.node).items():
            self.checker.log(partition, records)
        self.checker.check()


def _logs(node: Node) -> dict[TopicPartition, Log]:
    topic = node.image.topic(TOPIC)
    assert topic is not None
    return {
        TopicPartition(TOPIC, index): [
            (record.offset, bytes(record.value or b""))
            for record in read_log(node.replicas.partition(TOPIC, index).log)
        ]
        for index in topic.partitions
    }


def producer_history(seed: int) -> Simulation:
    """Run the history of a seed, and check it; the world, to look at its trace."""
    with Simulation(seed) as world:
        records = ProducerWorld(world)
        for number in range(PROGRAMS):
            name = f"program-{number}"
            world.program(send_with_several_producers, records, name, name=name)
        world.program(grow_topic, world)
        world.run()
        world.run_for(SETTLED_MS)
        records.check()
    return world


def send_with_several_producers(records: ProducerWorld, name: str) -> None:
    """A program: one producer after another, since a producer's first batches are special."""
    for number in range(PRODUCERS):
        ProducerUnderTest(records, f"{name}.{number}").run()


def grow_topic(world: Simulation) -> None:
    """Another program gives the topic more partitions, while records are sent."""
    chance = world.chance("growth")
    if chance.happens(0.3):
        world.sleep(chance.uniform(0, 3_000))
        with suppress(KafkaError), KafkaAdminClient(**world.client()) as admin:
            admin.create_partitions({TOPIC: 4}, timeout_ms=10_000)


class ProducerUnderTest:
    """Sends records, looks at every outcome, and closes its producer."""

    def __init__(self, records: ProducerWorld, name: str) -> None:
        self._records = records
        self._world = records.world
        self._name = name
        self._chance = self._world.chance(f"producer {name}")
        self._options = drawn_options(self._chance)
        self._count = 0

    def run(self) -> None:
        """Send in bursts, flush now and then, close."""
        chance = self._chance
        producer = self._connect()
        sendings: list[Sending] = []
        while self._count < RECORDS:
            count = 1 + chance.below(10)
            if chance.happens(0.3):
                sendings += self._send_many(producer, count)
            else:
                for _ in range(count):
                    sendings += self._send(producer)
            if chance.happens(0.1):
                self._flush(producer)
            self._world.sleep(chance.choice((0, 1, 10, 100)))
        in_haste = chance.happens(0.2)
        producer.close(timeout=chance.uniform(0, 2) if in_haste else None)
        for sending in sendings:
            self._judge(sending, in_haste)
        pool = producer._core.pool
        assert pool.available == pool.total, f"{pool.total - pool.available} bytes are missing"

    def _connect(self) -> KafkaProducer:
        while True:
            try:
                return KafkaProducer(**self._world.client(), **self._options)
            except NoBrokersAvailable:
                self._world.sleep(100)

    def _send(self, producer: KafkaProducer) -> list[Sending]:
        sent, key = self._next_record()
        try:
            future = producer.send(TOPIC, sent.value, key=key)
        except KafkaTimeoutError:  # no memory, or no metadata
            sent.failed()
            return []
        return [Sending(self._world, sent, future)]

    def _send_many(self, producer: KafkaProducer, count: int) -> list[Sending]:
        records = [self._next_record() for _ in range(count)]
        values, keys = [sent.value for sent, _ in records], [key for _, key in records]
        try:
            futures = producer.send_many(TOPIC, values, keys)
        except KafkaTimeoutError:  # no metadata
            for sent, _ in records:
                sent.failed()
            return []
        return [
            Sending(self._world, sent, future)
            for (sent, _), future in zip(records, futures, strict=True)
        ]

    def _next_record(self) -> tuple[Sent, bytes | None]:
        """A unique value, and its key."""
        self._count += 1
        chance = self._chance
        value = b"%s/%d/" % (self._name.encode(), self._count)
        value = value.ljust(chance.choice((1, 50, 400)), b".")
        sent = self._records.checker.sent(self._name, value)
        return sent, chance.choice((None, b"a", b"b"))

    def _flush(self, producer: KafkaProducer) -> None:
        try:
            producer.flush(timeout=self._chance.uniform(0, 5))
        except KafkaTimeoutError:
            self._world.note("could not flush in time")

    def _judge(self, sending: Sending, in_haste: bool) -> None:
        sent, future = sending.sent, sending.future
        took_ms = sending.done_ms - sending.sent_ms
        most_ms = self._options["delivery_timeout_ms"] + 4 * self._world.conditions.pause_ms
        assert took_ms <= most_ms + LATE_MS, f"had its outcome after {took_ms:.0f} ms: {sent}"
        if future.exception is None:
            metadata = future.get()
            sent.acked(TopicPartition(metadata.topic, metadata.partition), metadata.offset)
        elif isinstance(future.exception, Cancelled):
            assert in_haste, f"was cancelled, but there was time: {sent}"
        else:
            expected = {KafkaTimeoutError, BufferExhaustedError, *self._records.expected_errors}
            assert type(future.exception) in expected, f"{future.exception!r}: {sent}"


def drawn_options(chance: Chance) -> dict[str, Any]:
    """The options of a producer, by chance."""
    linger_ms = chance.choice((0, 0, 5, 100))
    batch_size = chance.choice((200, 500, 16_384))
    request_timeout_ms = chance.choice((500, 2_000))
    return {
        "acks": "all",
        "linger_ms": linger_ms,
        "batch_size": batch_size,
        "batch_max_size": batch_size * chance.choice((1, 3, 60)),  # grown by much, little, nothing
        "buffer_memory": chance.choice((5_000, 50_000, 1_000_000)),
        "compression_type": chance.choice((None, "gzip", "lz4")),
        "max_in_flight_requests_per_connection": chance.choice((1, 5, 5)),
        "request_timeout_ms": request_timeout_ms,
        "delivery_timeout_ms": linger_ms + request_timeout_ms + chance.choice((0, 3_000, 30_000)),
        "max_block_ms": chance.choice((100, 10_000)),
        "retry_backoff_ms": chance.choice((10, 100)),
        "reconnect_backoff_ms": chance.choice((1, 50)),
        "bootstrap_timeout_ms": 5_000,
        "metadata_max_idle_ms": chance.choice((5_000, 300_000)),
    }
