"""A history of power losses under consumers: what they read last at an offset is what is there.

Records are written to the log without a sync, so each power loss takes some of those that
consumers have read; others come in their place. A consumer that did not notice would skip the new
ones, or keep what no log has.
"""

from contextlib import suppress
from typing import Any

from broker_stub.log.internal_batches import build_batch
from broker_stub.testing.simulation import Simulation
from broker_stub.testing.simulation.chance import chance
from broker_stub.testing.simulation.conditions import drawn
from pyclient import KafkaConsumer, TopicPartition
from pyclient.errors import KafkaError, NoBrokersAvailable

PARTITIONS = [TopicPartition("orders", number) for number in range(2)]
STORM_MS = 8_000
SETTLED_MS = 40_000


class TruncationWorld:
    """What the programs of a history share."""

    def __init__(self, world: Simulation) -> None:
        self.world = world
        self.is_calm = False
        self.is_over = False
        self.written = 0
        self.read: dict[str, dict[TopicPartition, dict[int, bytes]]] = {}
        world.broker.create_topic("orders", len(PARTITIONS))

    def write(self) -> None:
        """Records come, and nobody syncs them."""
        draw = self.world.chance("writer")
        while not self.is_calm:
            self.world.sleep(draw.choice((20, 100, 300)))
            if self.world.broker.is_up:
                self.append(draw.choice(PARTITIONS), draw.choice((1, 3, 10)))

    def append(self, partition: TopicPartition, count: int) -> None:
        replicas = self.world.broker.node.replicas
        values = range(self.written, self.written + count)
        self.written += count
        records = [(None, b"%d" % value) for value in values]
        replicas.append(
            replicas.partition(*partition), build_batch(records, self.world.clock.now_ms())
        )

    def consume(self, name: str, **options: Any) -> None:
        """Read until all is over; a consumer that fails to start is made again."""
        found = self.read.setdefault(name, {one: {} for one in PARTITIONS})
        while not self.is_over:
            settings = {**self.world.client(), "auto_offset_reset": "earliest", **options}
            with suppress(NoBrokersAvailable), KafkaConsumer(**settings) as consumer:
                if "group_id" in options:
                    consumer.subscribe(["orders"])
                else:
                    consumer.assign(PARTITIONS)
                while not self.is_over:
                    with suppress(KafkaError):
                        for partition, records in consumer.poll(timeout_ms=200).items():
                            found[partition] |= {one.offset: one.value for one in records}

    def judge(self) -> None:
        world = self.world
        world.sleep(STORM_MS)
        world.calm()
        self.is_calm = True
        world.run_until(lambda: world.broker.is_up, SETTLED_MS)
        for partition in PARTITIONS:
            self.append(partition, 1)
        world.run_until(lambda: self.difference() is None, SETTLED_MS)
        difference = self.difference()
        self.is_over = True
        assert difference is None, difference

    def difference(self) -> str | None:
        """What a consumer has not got, or got otherwise."""
        if not self.world.broker.is_up:
            return "the broker is down"
        for record in self.world.broker.records("orders"):
            partition = TopicPartition(record.topic, record.partition)
            for name, read in self.read.items():
                value = read[partition].get(record.offset)
                if value != record.value:
                    there = f"{record.topic}-{record.partition}@{record.offset} {record.value!r}"
                    return f"{name} has {value!r} instead of {there}"
        return None


def truncation_history(seed: int) -> Simulation:
    """Run the history of a seed, and check it; the world, to look at its trace."""
    draw = chance(seed, "conditions")
    conditions = drawn(draw)
    if conditions.crash_every_ms > STORM_MS / 2:
        conditions = conditions._replace(crash_every_ms=draw.choice((1_000.0, 3_000.0)))
    conditions = conditions._replace(power_loss=draw.choice((0.5, 1.0)))
    config = {"group.min.session.timeout.ms": 1_000, "offsets.topic.num.partitions": 1}
    with Simulation(seed, conditions, broker_config=config) as world:
        history = TruncationWorld(world)
        common = {
            "metadata_max_age_ms": 5_000,
            "request_timeout_ms": 2_000,
            "retry_backoff_ms": 50,
            "default_api_timeout_ms": 3_000,
            "bootstrap_timeout_ms": 5_000,
            "max_poll_records": world.chance("options").choice((2, 500)),
        }
        member = {
            **common,
            "group_id": "kitchen",
            "session_timeout_ms": 2_000,
            "heartbeat_interval_ms": 200,
            "auto_commit_interval_ms": 100,
        }
        world.program(lambda: history.consume("alone", **common), name="alone")
        world.program(lambda: history.consume("member", **member), name="member")
        world.program(history.write, name="writer")
        world.program(history.judge, name="judge")
        world.run()
    return world
