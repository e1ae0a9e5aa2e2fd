"""A history of transactions: copiers in a group of 1 to 4, and programs that only write.

The copiers read `in` and write `out`, the writers write `notes`; a plain producer fills `in`, and
committed readers watch. Programs are killed and interrupted at any moment, the broker crashes, a
loss of power takes what was not synced, clocks are wrong and jump, requests arrive twice, the
network does its worst; after a calm end every input is copied exactly once. `TransactionChecker`
has the rules. Both transaction versions.
"""

from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress
from typing import Any

from broker_stub.testing.simulation import Simulation
from broker_stub.testing.simulation.chance import Chance, chance
from broker_stub.testing.simulation.conditions import drawn
from broker_stub.testing.simulation.programs import Program
from pyclient import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from pyclient.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    TransactionAbortableError,
)
from tests.simulation.transaction_checker import Fate, Transaction, TransactionChecker

STORM_MS = 12_000
SETTLED_MS = 120_000
WATCHED = ("out", "notes")
# Produce, AddPartitionsToTxn, AddOffsetsToTxn, InitProducerId, EndTxn, TxnOffsetCommit.
DOUBLED_FROM_2 = frozenset({0, 22, 24, 25, 26, 28})
# A late EndTxn or TxnOffsetCommit counts for the next transaction: KIP-890 is there to mend that.
DOUBLED_BEFORE_2 = frozenset({0})


class KilledError(Exception):
    """The program ends here, without a word to the broker."""


class TransactionsWorld:
    """What the programs of a history share.

    Attributes:
        inputs: the values that `in` has for certain, by partition and offset.
        is_calm: nothing goes wrong any more.
        is_over: everything is copied and seen.
    """

    def __init__(self, world: Simulation) -> None:
        self.world = world
        self.checker = TransactionChecker()
        self.inputs: dict[tuple[int, int], bytes] = {}
        self.is_calm = False
        self.is_over = False
        draw = world.chance("transactions")
        self.timeout_ms = draw.choice((1_500, 8_000))
        self.counts = {"in": 1 + draw.below(3), "out": 1 + draw.below(3), "notes": 2}
        for topic, count in self.counts.items():
            world.broker.create_topic(topic, count)
        self.copiers = [Copier(self, f"copier-{number}") for number in range(1 + draw.below(4))]
        self.writers = [Writer(self, f"writer-{number}") for number in range(1 + draw.below(2))]
        self.readers = [Reader(self, f"reader-{number}") for number in range(2)]

    def partitions(self, *topics: str) -> list[TopicPartition]:
        return [
            TopicPartition(topic, index) for topic in topics for index in range(self.counts[topic])
        ]

    # --- programs ----------------------------------------------------------------------------

    def fill(self) -> None:
        """Send inputs, and note those that were acknowledged."""
        draw = self.world.chance("source")
        producer = connected(self.world, KafkaProducer, linger_ms=0, request_timeout_ms=1_000)
        futures = []
        while not self.is_calm:
            with suppress(KafkaTimeoutError):
                futures.append(producer.send("in", b"in/%d" % len(futures)))
            self.world.sleep(draw.choice((5, 50, 300)))
        producer.close()
        for number, future in enumerate(futures):
            if future.exception is None:
                metadata = future.get()
                self.inputs[metadata.partition, metadata.offset] = b"in/%d" % number

    def meddle(self, programs: list[Program]) -> None:
        """Interrupt programs in whatever they wait for."""
        draw = self.world.chance("meddler")
        pause_ms = draw.choice((300, 1_000, 100_000))
        while not self.is_calm:
            self.world.sleep(draw.uniform(0, 2 * pause_ms))
            if not self.is_calm:
                draw.choice(programs).interrupt()

    def judge(self) -> None:
        """After the storm, wait until all is copied and seen."""
        self.world.sleep(STORM_MS)
        self.world.calm()
        self.is_calm = True
        self.world.note("it is calm")
        done = self.world.run_until(self._is_settled, SETTLED_MS)
        assert done, f"calm for {SETTLED_MS / 1000:.0f} s: {self._unsettled()}"
        self.is_over = True

    def _is_settled(self) -> bool:
        return self._unsettled() is None

    def _unsettled(self) -> str | None:
        if any(one.is_writing for one in self.writers) or not self.source_is_done:
            return "programs still write"
        for reader in self.readers:
            copied = {_origin(value) for value in reader.values("out")}
            missing = [where for where in self.inputs if where not in copied]
            if missing:
                return f"lost write: {reader.name} does not see copies of {missing[:5]}"
            unfinished = self.checker.unfinished(set(reader.values(*WATCHED)))
            if unfinished:
                return f"lost write: {reader.name} does not see {unfinished}"
            behind = reader.behind()
            if behind or reader.ends != self.readers[0].ends:
                return f"unseen: {reader.name} is behind by {behind}"
        return None

    @property
    def source_is_done(self) -> bool:
        return self.source is not None and self.source.is_done

    source: Program | None = None

    def copied(self) -> Counter[tuple[int, int]]:
        """How often a reader saw each input copied."""
        return Counter(_origin(value) for value in self.readers[0].values("out"))

    def check(self) -> None:
        """Judge, when nothing is under way any more."""
        logs = {
            partition: self.readers[0].log(partition) for partition in self.partitions(*WATCHED)
        }
        self.checker.check(logs, [one.name for one in self.readers])
        for where, count in self.copied().items():
            assert count == 1, f"duplicate: input {where} was copied {count} times"


def _origin(value: bytes) -> tuple[int, int]:
    partition, offset = value.split(b"|")[0].split(b"-")
    return int(partition), int(offset)


def connected(world: Simulation, kind: Any, **options: Any) -> Any:
    """A client, as soon as a broker answers."""
    while True:
        try:
            return kind(**world.client(), bootstrap_timeout_ms=2_000, **options)
        except NoBrokersAvailable:
            world.sleep(100)


class TransactionalProgram(ABC):
    """A program with a transactional id, over its lives."""

    def __init__(self, shared: TransactionsWorld, name: str) -> None:
        self.name = name
        self.is_writing = True
        self._shared = shared
        self._world = shared.world
        self._draw = shared.world.chance(name)
        self._clients: list[Any] = []
        self._count = 0

    def run(self) -> None:
        """Live, die, and live again."""
        while not self._is_over():
            try:
                self._live()
            except (KilledError, KeyboardInterrupt):
                self._world.note("dies")
            except KafkaError as error:
                self._world.note("gives up: %s", type(error).__name__)
            self._die()
        self.is_writing = False

    def _is_over(self) -> bool:
        return self._shared.is_over

    def _die(self) -> None:
        """End as a killed process does."""
        for client in self._clients:
            client.end()
        self._clients.clear()

    @abstractmethod
    def _live(self) -> None:
        """From its start until it is over, or an exception."""

    def _client(self) -> dict[str, Any]:
        client = self._world.client()
        self._clients.append(client["environment"])
        return client

    def _producer(self) -> KafkaProducer:
        draw = self._draw
        producer = KafkaProducer(
            **self._client(),
            transactional_id=self.name,
            transaction_timeout_ms=self._shared.timeout_ms,
            linger_ms=draw.choice((0, 5)),
            batch_size=draw.choice((100, 16_384)),
            request_timeout_ms=draw.choice((500, 2_000)),
            delivery_timeout_ms=draw.choice((3_000, 10_000)),
            max_block_ms=draw.choice((1_000, 10_000)),
            retry_backoff_ms=draw.choice((10, 100)),
            bootstrap_timeout_ms=2_000,
        )
        self._until_done(producer.init_transactions)
        return producer

    def _until_done(self, call: Any) -> None:
        """Call again after every timeout, as the documentation says."""
        while True:
            try:
                call()
                return
            except KafkaTimeoutError:
                self._world.note("tries again: %s", call.__name__)

    def _maybe_die(self, chance_of_it: float) -> None:
        if not self._shared.is_calm and self._draw.happens(chance_of_it):
            raise KilledError

    def _begin(self, producer: KafkaProducer) -> Transaction:
        self._count += 1
        producer.begin_transaction()
        return self._shared.checker.begin(f"{self.name}/{self._count}")

    def _commit(self, producer: KafkaProducer, transaction: Transaction) -> None:
        transaction.fate = Fate.COMMITTING
        try:
            self._until_done(producer.commit_transaction)
        except TransactionAbortableError:
            self._abort(producer, transaction)
            raise
        transaction.fate = Fate.COMMITTED

    def _abort(self, producer: KafkaProducer, transaction: Transaction) -> None:
        transaction.fate = Fate.ABORTED
        with suppress(IllegalStateError):
            self._until_done(producer.abort_transaction)


class Writer(TransactionalProgram):
    """Writes transactions of several records to both partitions of `notes`."""

    def _is_over(self) -> bool:
        return self._shared.is_calm

    def _live(self) -> None:
        producer = self._producer()
        while not self._is_over():
            transaction = self._begin(producer)
            try:
                self._fill(producer, transaction)
                if self._draw.happens(0.3):
                    self._abort(producer, transaction)
                else:
                    self._maybe_die(0.03)
                    self._commit(producer, transaction)
            except TransactionAbortableError:
                if transaction.fate is not Fate.ABORTED:
                    self._abort(producer, transaction)
            self._world.sleep(self._draw.choice((0, 20, 200)))
        producer.close()

    def _fill(self, producer: KafkaProducer, transaction: Transaction) -> None:
        for number in range(1 + self._draw.below(6)):
            value = b"%s.%d" % (transaction.name.encode(), number)
            self._shared.checker.write(transaction, value)
            producer.send("notes", value, partition=self._draw.below(2))
            self._maybe_die(0.02)
            if self._draw.happens(0.2):
                self._world.sleep(self._draw.choice((1, 50, 2_000)))


class Copier(TransactionalProgram):
    """Copies `in` to `out`, as one of a group."""

    def _live(self) -> None:
        draw = self._draw
        producer = self._producer()
        consumer = KafkaConsumer(
            "in",
            **self._client(),
            group_id="copiers",
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=draw.choice((1_500, 4_000)),
            heartbeat_interval_ms=300,
            max_poll_records=draw.choice((1, 5, 50)),
            request_timeout_ms=1_000,
            bootstrap_timeout_ms=2_000,
        )
        while not self._is_over():
            records = consumer.poll(timeout_ms=draw.choice((20, 200)))
            if records:
                self._copy(consumer, producer, records)
        consumer.close()
        producer.close()

    def _copy(self, consumer: KafkaConsumer, producer: KafkaProducer, records: Any) -> None:
        transaction = self._begin(producer)
        offsets = {}
        try:
            for partition, batch in records.items():
                for record in batch:
                    transaction.reads.append(record.value)
                    origin = b"%d-%d" % (partition.partition, record.offset)
                    value = b"%s|%s" % (origin, transaction.name.encode())
                    self._shared.checker.write(transaction, value)
                    producer.send("out", value, key=origin)
                    self._maybe_die(0.01)
                offsets[partition] = OffsetAndMetadata(batch[-1].offset + 1, "", -1)
            if self._draw.happens(0.1):
                self._world.sleep(self._draw.choice((10, 500, 3_000)))
            self._send_offsets(consumer, producer, offsets)
            self._maybe_die(0.03)
            self._commit(producer, transaction)
        except (CommitFailedError, TransactionAbortableError):
            if transaction.fate is not Fate.ABORTED:
                self._abort(producer, transaction)
            raise KilledError from None  # the simplest way back to the committed offsets

    def _send_offsets(
        self,
        consumer: KafkaConsumer,
        producer: KafkaProducer,
        offsets: dict[TopicPartition, OffsetAndMetadata],
    ) -> None:
        member = consumer.group_metadata()
        while True:
            try:
                producer.send_offsets_to_transaction(offsets, member)
                return
            except KafkaTimeoutError:
                self._world.note("tries again to send offsets")


class Reader:
    """A committed reader of all that is written, from its beginning to its end.

    Attributes:
        ends: the ends of all partitions, as it was told last, in calm.
    """

    def __init__(self, shared: TransactionsWorld, name: str) -> None:
        self.name = name
        self._shared = shared
        self._logs: dict[TopicPartition, list[tuple[int, bytes]]] = {
            partition: [] for partition in shared.partitions(*WATCHED)
        }
        self._positions: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}

    def log(self, partition: TopicPartition) -> list[tuple[int, bytes]]:
        return self._logs[partition]

    def values(self, *topics: str) -> list[bytes]:
        return [
            value
            for partition, log in self._logs.items()
            if partition.topic in topics
            for _, value in log
        ]

    def behind(self) -> dict[TopicPartition, int]:
        """How far it is from the ends that it was told in calm."""
        if not self.ends:
            return dict.fromkeys(self._logs, -1)
        return {
            partition: end - self._positions.get(partition, 0)
            for partition, end in self.ends.items()
            if end > self._positions.get(partition, 0)
        }

    def run(self) -> None:
        draw = self._shared.world.chance(self.name)
        consumer = connected(
            self._shared.world,
            KafkaConsumer,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            request_timeout_ms=1_000,
            max_partition_fetch_bytes=draw.choice((100, 1_048_576)),
        )
        consumer.assign(list(self._logs))
        while not self._shared.is_over:
            for partition, records in consumer.poll(timeout_ms=200).items():
                for record in records:
                    value = record.value
                    self._shared.checker.saw(self.name, partition, record.offset, value)
                    self._logs[partition].append((record.offset, value))
            if self._shared.is_calm and self._shared.source_is_done:
                with suppress(KafkaTimeoutError):
                    self.ends = consumer.end_offsets(list(self._logs))
                    self._positions = {one: consumer.position(one) for one in self._logs}
            self._shared.world.sleep(draw.choice((10, 200)))
        consumer.close()


def transactions_history(seed: int) -> Simulation:
    """Run the history of a seed, and check it; the world, to look at its trace."""
    draw: Chance = chance(seed, "version")
    config = {
        "group.min.session.timeout.ms": 1_000,
        "offsets.topic.num.partitions": 2,
        "transaction.state.log.num.partitions": 2,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 300,
        "transaction.version": draw.choice((1, 2, 2)),
    }
    conditions = drawn(chance(seed, "conditions"))._replace(
        double=draw.choice((0.0, 0.02, 0.2)),
        doubled_apis=DOUBLED_FROM_2 if config["transaction.version"] == 2 else DOUBLED_BEFORE_2,
        skew_ms=draw.choice((0, 1_000, 30_000)),
    )
    if conditions.power_loss:
        config["log.flush.interval.messages"] = 1  # else a loss of power may lose records
    with Simulation(seed, conditions, broker_config=config) as world:
        history = TransactionsWorld(world)
        history.source = world.program(history.fill, name="source")
        programs = [
            world.program(one.run, name=one.name) for one in (*history.copiers, *history.writers)
        ]
        for reader in history.readers:
            world.program(reader.run, name=reader.name)
        world.program(history.meddle, programs, name="meddler")
        world.program(history.judge, name="judge")
        world.run()
        history.check()
    return world
