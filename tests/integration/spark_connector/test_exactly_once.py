"""The exactly-once sink's protocol without Spark: tasks and drivers on our broker, step by step."""

import pickle
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import StructType

from broker_stub import Broker
from pyclient import KafkaAdminClient, TopicPartition
from spark_connector.data_source import KafkaDataSource
from spark_connector.exactly_once import driver as driver_module
from spark_connector.exactly_once.decisions import DecisionLog, State
from spark_connector.exactly_once.driver import abort_batch, commit_batch
from spark_connector.exactly_once.endings import open_tasks
from spark_connector.exactly_once.failures import (
    AnotherDriverError,
    PartialBatchError,
    TransactionsLostError,
    VoidBatchError,
)
from spark_connector.exactly_once.names import Attempt, TaskTransaction
from spark_connector.exactly_once.recovery import finish, settle
from spark_connector.exactly_once.sink import ExactlyOnceSink, parse_exactly_once
from spark_connector.exactly_once.task import write_task
from spark_connector.sink_options import parse_sink_options

KEY = "spark-sink:q"
SCHEMA = StructType().add("value", "string")


class Killed(BaseException):
    """The driver's process is gone."""


class Query:
    """Runs of one query, on one checkpoint."""

    def __init__(self, broker: Broker, **options: str) -> None:
        self.options = {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "topic": "out",
            "exactlyOnce": "true",
            **options,
        }
        sink = parse_exactly_once(self.options, parse_sink_options(self.options), streaming=True)
        assert sink is not None
        self.sink: ExactlyOnceSink = sink
        sink.check()
        self.admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)

    def task(
        self, number: int, partition: int = 0, attempt: int = 0, generation: int = 0
    ) -> TaskTransaction | None:
        """One attempt of a task: its row is named after batch and partition."""
        batch = pa.record_batch({"value": [f"{number}/{partition}"]})
        named = Attempt(KEY, number, partition, attempt, generation)
        return write_task(iter([batch]), self.sink, named).transaction

    def tasks(self, number: int, count: int = 3, **how: int) -> list[TaskTransaction]:
        made = (self.task(number, partition, **how) for partition in range(count))
        return [one for one in made if one is not None]

    def commit(self, number: int, transactions: list[TaskTransaction]) -> None:
        commit_batch(self.sink, KEY, number, transactions)

    def run(self, number: int, count: int = 3, **how: int) -> None:
        self.commit(number, self.tasks(number, count, **how))

    def lose(self, *transactions: TaskTransaction) -> None:
        """As after transaction.timeout.ms: aborted, with a new epoch."""
        for one in transactions:
            self.admin.end_transaction(one.prepared, commit=False)

    def read(self) -> list[str]:
        """What a reader of committed records sees."""
        place = TopicPartition("out", 0)
        rows = []
        with self.sink.consumer("read_committed") as consumer:
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            while consumer.position(place) < end:
                for records in consumer.poll(timeout_ms=1_000).values():
                    rows += [(record.value or b"").decode() for record in records]
        return sorted(rows)

    def still_open(self) -> list[str]:
        return [one.transactional_id for one in open_tasks(self.admin, KEY)]


def rows(*batches: int, count: int = 3) -> list[str]:
    return [f"{number}/{partition}" for number in batches for partition in range(count)]


@pytest.fixture(params=[1, 2], ids=["TV1", "TV2"])
def query(request: pytest.FixtureRequest) -> Iterator[Query]:
    with Broker(config={"transaction.version": request.param}) as broker:
        broker.create_topic("out", 1)
        made = Query(broker)
        yield made
        made.admin.close()


def kill_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int) -> None:
    """Let the driver die before its nth call of a function."""
    original: Callable[..., Any] = getattr(owner, name)
    calls = iter(range(1, 100))

    def dying(*arguments: Any, **named: Any) -> Any:
        if next(calls) == call:
            raise Killed
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, dying)


def test_batches_are_visible_once_they_are_committed(query: Query) -> None:
    first = query.tasks(0)
    assert query.read() == []
    query.commit(0, first)
    query.run(1)
    assert query.read() == rows(0, 1)
    assert query.still_open() == []


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [
        (driver_module, "taken_over", 1),
        (driver_module, "still_open", 1),
        (DecisionLog, "write", 1),
        (driver_module, "end_all", 1),
        (DecisionLog, "write", 2),
    ],
    ids=["before", "before deciding", "deciding", "decided", "committed"],
)
@pytest.mark.parametrize("count", [3, 1], ids=["as many tasks", "fewer tasks"])
def test_a_driver_that_dies_anywhere_in_its_commit_writes_each_row_once(
    query: Query, owner: Any, name: str, call: int, count: int
) -> None:
    query.run(0)
    transactions = query.tasks(1)
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, owner, name, call)
        with pytest.raises(Killed):
            query.commit(1, transactions)
    is_decided = (owner, name, call) in ((driver_module, "end_all", 1), (DecisionLog, "write", 2))
    replayed = query.tasks(1, count, generation=1)
    assert bool(replayed) is not is_decided  # a task of a decided batch writes nothing
    query.commit(1, replayed)
    query.run(2)
    assert query.read() == [*rows(0), *rows(1, count=3 if is_decided else count), *rows(2)]
    assert query.still_open() == []


def test_a_driver_that_dies_between_two_ends_is_rolled_forward(query: Query) -> None:
    transactions = query.tasks(0)
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, KafkaAdminClient, "end_transaction", 3)
        with pytest.raises(Killed):
            query.commit(0, transactions)
    assert query.task(0) is None
    query.commit(0, [])
    assert query.read() == rows(0)


def test_a_task_that_dies_leaves_nothing_behind_after_the_next_commit(query: Query) -> None:
    query.task(0, partition=0)  # its executor died, and so nobody knows of its transaction
    query.run(0, generation=3)
    assert query.read() == rows(0)
    assert query.still_open() == []


def test_a_speculative_copy_that_starts_after_its_twin_finished_changes_nothing(
    query: Query,
) -> None:
    winners = query.tasks(0)
    assert query.task(0, partition=1, attempt=1) is not None
    query.commit(0, winners)
    assert query.read() == rows(0)
    assert query.still_open() == []


def test_a_zombie_task_after_the_decision_writes_nothing(query: Query) -> None:
    query.run(0)
    assert query.task(0, partition=0) is None
    query.run(1)
    assert query.read() == rows(0, 1)


def test_a_zombie_task_with_the_same_id_fails_the_batch_before_the_decision(query: Query) -> None:
    transactions = query.tasks(0)
    query.task(0, partition=1)  # the same slot of the ring, by bad luck
    with pytest.raises(TransactionsLostError, match=r"tasks \[1\]"):
        query.commit(0, transactions)
    assert query.read() == []
    query.run(0, generation=1)
    assert query.read() == rows(0)
    assert query.still_open() == []


def test_a_timeout_before_the_decision_fails_the_batch_and_it_is_written_again(
    query: Query,
) -> None:
    transactions = query.tasks(0)
    query.lose(transactions[2])
    with pytest.raises(TransactionsLostError, match=r"transaction\.timeout\.ms"):
        query.commit(0, transactions)
    query.run(0)
    assert query.read() == rows(0)


def decide_only(query: Query, number: int) -> list[TaskTransaction]:
    """A driver that dies right after its decision."""
    transactions = query.tasks(number)
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, driver_module, "end_all", 1)
        with pytest.raises(Killed):
            query.commit(number, transactions)
    return transactions


@pytest.mark.parametrize("reused", [False, True], ids=["as told", "by proof"])
@pytest.mark.parametrize("lost", [1, 3])
def test_a_decided_batch_of_which_nothing_is_committed_is_void_and_written_again(
    query: Query, lost: int, reused: bool
) -> None:
    transactions = decide_only(query, 0)
    query.lose(*transactions[:lost])
    if reused:
        for one in transactions[:lost]:  # EndTxn cannot tell any more
            with query.sink.task_producer(one.prepared.transactional_id) as other:
                other.init_transactions()
    with pytest.raises(VoidBatchError, match="none of its rows"):
        query.commit(0, [])
    assert query.read() == []
    query.run(0, generation=1)
    assert query.read() == rows(0)
    assert query.still_open() == []


@pytest.mark.parametrize(("ending", "seen"), [("done", ["0/0", "0/1"]), ("void", None)])
def test_a_batch_that_is_committed_in_part_fails_by_name_until_it_is_settled(
    query: Query, ending: Any, seen: list[str] | None
) -> None:
    transactions = decide_only(query, 0)
    query.admin.end_transaction(transactions[0].prepared, commit=True)
    query.lose(transactions[2])
    for _ in range(2):
        with pytest.raises(PartialBatchError, match=r"tasks \[0, 1\] are visible") as caught:
            query.commit(0, [])
        assert (caught.value.committed, caught.value.lost) == ([0, 1], [2])
    settle(query.options, 0, ending, query_id="q")
    with pytest.raises(ValueError, match="not waiting"):
        settle(query.options, 0, ending, query_id="q")
    if seen is None:
        query.run(0, generation=1)
        seen = sorted(["0/0", "0/1", *rows(0)])
    else:
        assert query.task(0) is None
    assert query.read() == seen


def test_what_was_committed_is_known_by_its_proof_after_its_id_was_used_again(
    query: Query,
) -> None:
    transactions = decide_only(query, 0)
    query.admin.end_transaction(transactions[0].prepared, commit=True)
    with query.sink.task_producer(transactions[0].prepared.transactional_id) as other:
        other.init_transactions()
    query.commit(0, [])
    assert query.read() == rows(0)


def test_of_two_drivers_the_one_that_comes_later_to_its_commit_finishes_the_first(
    query: Query,
) -> None:
    old, new = query.tasks(0), query.tasks(0, generation=1)
    query.commit(0, old)
    query.commit(0, new)
    assert query.read() == rows(0)
    query.run(1)
    with pytest.raises(AnotherDriverError, match="stop one"):
        query.commit(0, [])
    assert query.read() == rows(0, 1)
    assert query.still_open() == []


@pytest.mark.parametrize("call", [1, 2], ids=["before its decision", "before it is done"])
def test_a_driver_that_stalls_inside_its_commit_cannot_disturb_the_next(
    query: Query, call: int
) -> None:
    old = query.tasks(0)
    original = DecisionLog.write
    calls = iter(range(1, 100))

    def stalling(log: DecisionLog, decision: Any) -> None:
        if next(calls) == call:
            query.commit(0, query.tasks(0, generation=1))
            query.run(1, generation=2)
        original(log, decision)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DecisionLog, "write", stalling)
        with pytest.raises(AnotherDriverError, match="has taken over"):
            query.commit(0, old)
    abort_batch(query.sink, KEY, 0, old)
    query.run(2)
    assert query.read() == rows(0, 1, 2)
    assert query.still_open() == []


def test_a_failed_batch_is_aborted_and_a_decided_one_is_not(query: Query) -> None:
    failed = query.tasks(0)
    abort_batch(query.sink, KEY, 0, failed)
    assert query.still_open() == []
    decided = decide_only(query, 0)
    abort_batch(query.sink, KEY, 0, decided)
    query.commit(0, [])
    assert query.read() == rows(0)


def test_a_decision_is_found_without_the_committed_offset(query: Query) -> None:
    decide_only(query, 4)
    group = f"{KEY}:decided"
    query.admin.delete_group_offsets(group, [query.sink.decisions])
    replayed = query.tasks(4, generation=1)
    query.commit(4, replayed)
    assert query.read() == rows(4)
    assert query.still_open() == []


class TestBatchWrites:
    def writer(self, query: Query, **options: str) -> Any:
        given = {**query.options, "transactionalIdPrefix": "job", **options}
        return KafkaDataSource(given).writer(SCHEMA, False)

    def write(self, monkeypatch: pytest.MonkeyPatch, writer: Any, value: str) -> Any:
        context = Mock(partitionId=lambda: 0, attemptNumber=lambda: 0)
        monkeypatch.setattr(TaskContext, "get", lambda: context)
        batch = pa.record_batch({"value": [value]})
        return pickle.loads(pickle.dumps(writer)).write(iter([batch]))

    def test_a_job_that_died_inside_its_commit_is_finished_by_the_next(
        self, query: Query, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        writer = self.writer(query)
        message = self.write(monkeypatch, writer, "first")
        assert query.read() == []
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, driver_module, "end_all", 1)
            with pytest.raises(Killed):
                writer.commit([message])
        writer = self.writer(query)
        assert query.read() == ["first"]
        writer.commit([self.write(monkeypatch, writer, "second")])
        assert query.read() == ["first", "second"]

    def test_or_by_a_call(self, query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
        options = {**query.options, "transactionalIdPrefix": "job"}
        assert finish(options) is None
        writer = self.writer(query)
        message = self.write(monkeypatch, writer, "first")
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, driver_module, "end_all", 1)
            with pytest.raises(Killed):
                writer.commit([message])
        assert finish(options) == (0, State.DONE)
        assert query.read() == ["first"]

    def test_a_batch_id_makes_a_repeated_write_harmless(
        self, query: Query, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in (7, 7, 8):
            writer = self.writer(query, batchId=str(number))
            writer.commit([self.write(monkeypatch, writer, f"batch {number}")])
        assert query.read() == ["batch 7", "batch 8"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kafka.acks": "1"}, "decided by 'exactlyOnce'"),
        ({"transactionalIdPrefix": "a:b"}, "colon"),
        ({"batchId": "3"}, "batch writes only"),
        ({"exactlyOnce": "yes"}, "true or false"),
    ],
)
def test_wrong_options_are_refused_on_the_driver(options: dict[str, str], words: str) -> None:
    given = {"kafka.bootstrap.servers": "x:1", "exactlyOnce": "true", **options}
    with pytest.raises(ValueError, match=words):
        KafkaDataSource(given).streamWriter(SCHEMA, False)


def test_a_batch_write_needs_a_prefix() -> None:
    given = {"kafka.bootstrap.servers": "x:1", "exactlyOnce": "true"}
    with pytest.raises(ValueError, match="transactionalIdPrefix"):
        KafkaDataSource(given).writer(SCHEMA, False)
