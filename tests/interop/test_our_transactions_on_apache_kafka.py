"""Our transactional producer, consumer and admin client on Apache Kafka 4.3, TV1 and TV2.

Three kills of a read-process-write program run with the interop tests, 20 of it and 5 of the broker
by `make soak-transactions`.
"""

import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from broker_stub import Broker
from pyclient import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from pyclient.admin import NewTopic
from pyclient.errors import (
    InvalidTxnStateError,
    InvalidTxnTimeoutError,
    KafkaError,
    ProducerFencedError,
    TransactionAbortableError,
)
from tests.integration.broker_stub.raw_client import RawClient
from tests.interop.apache_kafka import ApacheKafka, apache_kafka
from tests.support.broker_load import create_topic
from tests.support.transaction_script import NEW, OLD, Producer, TransactionScript

OUT = TopicPartition("out", 0)
RECORDS = 400
# After a timeout Kafka 4.3 fences with transaction.version 1, and has no such transaction with 2.
_LOST = (ProducerFencedError, InvalidTxnStateError)
OFTEN = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}


@pytest.fixture(scope="module", params=[1, 2], ids=["TV1", "TV2"])
def node(
    request: pytest.FixtureRequest, kafka_jars: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheKafka]:
    """A node that looks for timed-out transactions often."""
    config = {
        "num.partitions": "1",
        **OFTEN,
        "group.min.session.timeout.ms": "500",
    }
    features = [f"transaction.version={request.param}"]
    folder = tmp_path_factory.mktemp("kafka")
    with apache_kafka(folder, config, features=features) as running:
        yield running


@pytest.fixture
def admin(node: ApacheKafka) -> Iterator[KafkaAdminClient]:
    """With empty topics `in` and `out`."""
    with KafkaAdminClient(bootstrap_servers=node.bootstrap_servers) as client:
        names = {"in", "out"} & set(client.list_topics())
        if names:
            client.delete_topics(sorted(names))
            until(lambda: not names & set(client.list_topics()))
        client.create_topics([NewTopic("in", 2, 1), NewTopic("out", 1, 1)])
        yield client


NewProducer = Callable[..., KafkaProducer]


@pytest.fixture
def new_producer(node: ApacheKafka) -> Iterator[NewProducer]:
    """Makes initialized producers with an id of their own, and closes them."""
    made: list[KafkaProducer] = []

    def new_producer(**options: object) -> KafkaProducer:
        options = {"transactional_id": uuid.uuid4().hex, **options}
        made.append(KafkaProducer(bootstrap_servers=node.bootstrap_servers, **options))  # type: ignore[arg-type]
        made[-1].init_transactions()
        return made[-1]

    yield new_producer
    for producer in made:
        producer.close(timeout=5)


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to this in time"
        time.sleep(0.02)


def read(node: ApacheKafka, isolation_level: str = "read_committed") -> list[bytes]:
    """The values of topic out, up to its end as this isolation level sees it."""
    with KafkaConsumer(
        bootstrap_servers=node.bootstrap_servers, isolation_level=isolation_level
    ) as consumer:
        consumer.assign([OUT])
        consumer.seek_to_beginning()
        (end,) = consumer.end_offsets([OUT]).values()
        values: list[bytes] = []
        deadline = time.monotonic() + 30
        while consumer.position(OUT) < end:
            assert time.monotonic() < deadline
            for records in consumer.poll(timeout_ms=500).values():
                values += [record.value for record in records]
        return values


@pytest.mark.usefixtures("admin")
class TestOneProducer:
    def test_what_was_committed_is_seen_and_nothing_else(
        self, node: ApacheKafka, new_producer: NewProducer, admin: KafkaAdminClient
    ) -> None:
        producer = new_producer()
        offsets = {TopicPartition("in", 0): OffsetAndMetadata(1, "", -1)}
        for number in range(6):
            producer.begin_transaction()
            producer.send("out", b"%d" % number)
            producer.flush()
            next_offset = OffsetAndMetadata(number, "", -1)
            offsets = {TopicPartition("in", 0): next_offset}
            producer.send_offsets_to_transaction(offsets, "reader")
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        until(lambda: read(node) == [b"0", b"2", b"4"])
        assert read(node, "read_uncommitted") == [b"%d" % number for number in range(6)]
        committed = admin.list_group_offsets({"reader": [TopicPartition("in", 0)]})
        assert committed["reader"][TopicPartition("in", 0)].offset == 4

    def test_open_records_are_behind_the_end_of_a_committed_reader(
        self, node: ApacheKafka, new_producer: NewProducer
    ) -> None:
        producer = new_producer()
        with producer.transaction():
            producer.send("out", b"done")
        producer.begin_transaction()
        producer.send("out", b"open")
        producer.flush()
        ends = {}
        for level in ("read_committed", "read_uncommitted"):
            with KafkaConsumer(
                bootstrap_servers=node.bootstrap_servers, isolation_level=level
            ) as consumer:
                ends[level] = consumer.end_offsets([OUT])[OUT]
        assert ends == {"read_committed": 2, "read_uncommitted": 3}
        assert read(node) == [b"done"]
        producer.abort_transaction()

    def test_a_transaction_that_takes_too_long_is_fenced(
        self, node: ApacheKafka, new_producer: NewProducer, admin: KafkaAdminClient
    ) -> None:
        producer = new_producer(transaction_timeout_ms=300)
        producer.begin_transaction()
        producer.send("out", b"late")
        producer.flush()
        name = producer.config["transactional.id"]
        until(lambda: admin.describe_transactions([name])[name].state.value == "CompleteAbort")
        with pytest.raises(_LOST, match=r"transaction\.timeout\.ms"):
            producer.commit_transaction()
        assert read(node) == []

    def test_a_zombie_is_fenced_whatever_it_does(
        self, node: ApacheKafka, new_producer: NewProducer
    ) -> None:
        zombie = new_producer(transactional_id="one-of-two")
        zombie.begin_transaction()
        zombie.send("out", b"zombie")
        zombie.flush()
        living = new_producer(transactional_id="one-of-two")
        with living.transaction():
            living.send("out", b"living")
        zombie.send("out", b"zombie again")
        with pytest.raises((ProducerFencedError, TransactionAbortableError)) as caught:
            zombie.commit_transaction()
        if not isinstance(caught.value, ProducerFencedError):
            with pytest.raises(ProducerFencedError):
                zombie.abort_transaction()
        with pytest.raises(ProducerFencedError):
            zombie.begin_transaction()
        assert read(node) == [b"living"]

    def test_a_timeout_above_the_brokers_maximum_is_refused(
        self, new_producer: NewProducer
    ) -> None:
        with pytest.raises(InvalidTxnTimeoutError):
            new_producer(transaction_timeout_ms=2**31 - 1)

    def test_a_record_that_the_broker_refuses_is_aborted_and_the_next_ones_are_fine(
        self, node: ApacheKafka, new_producer: NewProducer, admin: KafkaAdminClient
    ) -> None:
        admin.create_topics([NewTopic("small", 1, 1, topic_configs={"max.message.bytes": "200"})])
        producer = new_producer()
        with (
            pytest.raises(TransactionAbortableError, match=r"max\.message\.bytes"),
            producer.transaction(),
        ):
            producer.send("small", b"x" * 500)
        with producer.transaction():
            producer.send("out", b"next")
            producer.send("small", b"next")
        until(lambda: read(node) == [b"next"])
        admin.delete_topics(["small"])


class TestPreparedTransactions:
    def prepare(self, new_producer: NewProducer, **options: object) -> tuple[KafkaProducer, object]:
        producer = new_producer(**options)
        producer.begin_transaction()
        producer.send("out", b"prepared")
        return producer, producer.prepare_transaction()

    @pytest.mark.parametrize("commit", [True, False])
    def test_another_client_ends_it_as_often_as_it_likes(
        self, node: ApacheKafka, new_producer: NewProducer, admin: KafkaAdminClient, commit: bool
    ) -> None:
        producer, prepared = self.prepare(new_producer)
        producer.close()
        assert read(node) == []
        for _ in range(3):
            admin.end_transaction(prepared, commit=commit)  # type: ignore[arg-type]
        with pytest.raises(InvalidTxnStateError):
            admin.end_transaction(prepared, commit=not commit)  # type: ignore[arg-type]
        until(lambda: read(node) == ([b"prepared"] if commit else []))

    @pytest.mark.parametrize("how", ["timed out", "taken over"])
    def test_a_lost_one_is_refused(
        self, node: ApacheKafka, new_producer: NewProducer, admin: KafkaAdminClient, how: str
    ) -> None:
        producer, prepared = self.prepare(new_producer, transaction_timeout_ms=400)
        producer.close()
        name = producer.config["transactional.id"]
        if how == "taken over":
            new_producer(transactional_id=name)
        until(lambda: admin.describe_transactions([name])[name].state.value != "Ongoing")
        until(lambda: ended_with(admin, prepared) is not None)
        lost = (ProducerFencedError,) if how == "taken over" else _LOST
        assert ended_with(admin, prepared) in lost
        assert read(node) == []


def repeated_ends(port: int, version: int) -> dict[str, tuple[int, int]]:
    """The answers to a commit and an abort of a transaction that is over, by how it ended.

    The exactly-once sink learns from them how a decided transaction ended.
    """
    end_version, produce_version = (5, NEW) if version == 2 else (4, OLD)
    answers: dict[str, tuple[int, int]] = {}
    create_topic(f"127.0.0.1:{port}", "ends", 1)
    with RawClient(port) as client:

        def prepared(name: str, timeout_ms: int = 60_000) -> tuple[TransactionScript, Producer]:
            script = TransactionScript(client.ask, f"ends-{name}", "ends")
            until(lambda: script.find() == 0)
            until(lambda: script.init().error not in (14, 15, 16))  # the coordinator is loading
            producer = script.started(timeout_ms=timeout_ms)
            if version == 1:
                assert script.add(producer, 0) == 0
            until(lambda: script.produce(producer, b"x", version=produce_version) == 0)
            return script, producer

        def end(script: TransactionScript, producer: Producer, *, commit: bool) -> int:
            return script.end(producer, commit=commit, version=end_version).error

        def repeat(name: str, script: TransactionScript, producer: Producer) -> None:
            script.settle()
            answers[name] = (
                end(script, producer, commit=True),
                end(script, producer, commit=False),
            )

        for commit in (True, False):
            name = "committed" if commit else "aborted"
            script, producer = prepared(name)
            assert end(script, producer, commit=commit) == 0
            repeat(name, script, producer)
            script.started()
            repeat(f"{name}, then initialized", script, producer)
        script, producer = prepared("timed out", 300)
        until(lambda: script.describe()["state"] == "CompleteAbort")
        repeat("timed out", script, producer)
        script.started()
        repeat("timed out, then initialized", script, producer)
        script, producer = prepared("taken over")
        script.started()
        repeat("taken over", script, producer)
    return answers


def test_repeated_ends_are_answered_as_by_our_broker(
    request: pytest.FixtureRequest, node: ApacheKafka
) -> None:
    version = 2 if "TV2" in request.node.name else 1
    theirs = repeated_ends(node.port, version)
    with Broker(config={"transaction.version": version, **OFTEN}) as ours:
        assert repeated_ends(ours.port, version) == theirs
    fenced, lost = ProducerFencedError.code, InvalidTxnStateError.code
    assert theirs == {
        "committed": (0, lost),
        "committed, then initialized": (fenced, fenced),
        "aborted": (lost, 0),
        "aborted, then initialized": (fenced, fenced),
        "timed out": (lost, 0) if version == 2 else (fenced, fenced),
        "timed out, then initialized": (fenced, fenced),
        "taken over": (fenced, fenced),
    }


def ended_with(admin: KafkaAdminClient, prepared: object) -> type[KafkaError] | None:
    try:
        admin.end_transaction(prepared, commit=True)  # type: ignore[arg-type]
    except KafkaError as error:
        return type(error)
    return None


class Copiers:
    """Processes that copy `in` to `out`."""

    def __init__(self, node: ApacheKafka, count: int) -> None:
        self._node = node
        self._running = [self._start(index) for index in range(count)]
        for one in self._running:
            self._wait_ready(one)

    def _start(self, index: int) -> subprocess.Popen[str]:
        arguments = (self._node.bootstrap_servers, f"copier-{index}")
        return subprocess.Popen(
            [sys.executable, "-m", "tests.support.copier", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _wait_ready(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    def kill(self, index: int) -> None:
        """Kill one, and start it again under the same id."""
        process = self._running[index]
        process.kill()
        process.wait(10)
        _close_pipes(process)
        self._running[index] = self._start(index)

    def stop(self) -> None:
        for process in self._running:
            process.kill()
            process.wait(10)
            _close_pipes(process)


def _close_pipes(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def kill_broker(node: ApacheKafka) -> None:
    """Kill the broker, and start it again."""
    assert node._process is not None
    node._process.send_signal(signal.SIGKILL)
    node._process.wait(10)
    node.launch()
    node._wait_until_it_answers()


@pytest.mark.parametrize(
    ("copiers", "program_kills", "broker_kills"),
    [(1, 3, 0), pytest.param(2, 20, 5, marks=pytest.mark.soak, id="soak-transactions")],
)
@pytest.mark.usefixtures("admin")
def test_a_program_that_is_killed_copies_each_record_exactly_once(
    node: ApacheKafka, copiers: int, program_kills: int, broker_kills: int
) -> None:
    chance = random.Random(program_kills)
    steps = ["program"] * program_kills + ["broker"] * broker_kills
    chance.shuffle(steps)
    group = Copiers(node, copiers)
    sent = []
    try:
        with KafkaProducer(bootstrap_servers=node.bootstrap_servers) as source:
            for step in [*steps, None]:
                for _ in range(RECORDS // (len(steps) + 1)):
                    value = b"%d" % len(sent)
                    sent.append(source.send("in", value, key=value))
                source.flush(60)
                time.sleep(chance.uniform(0.1, 0.8))  # somewhere in a transaction
                if step == "program":
                    group.kill(chance.randrange(copiers))
                elif step == "broker":
                    kill_broker(node)
        until(lambda: len(read(node)) >= len(sent), 60)
    finally:
        group.stop()
    expected = Counter(
        b"%d-%d:%d" % (future.get(0).partition, future.get(0).offset, number)
        for number, future in enumerate(sent)
    )
    assert Counter(read(node)) == expected
