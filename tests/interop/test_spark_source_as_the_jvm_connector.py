"""Our Spark source beside Spark's own Kafka connector: the same topics, options, rows and errors.

CI compares a slice of the cases, a soak all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker_stub import Broker
from pyclient import KafkaProducer
from tests.integration.spark_connector.topics import (
    FIRST_MS,
    delete_records,
    fill,
    write_transaction,
)
from tests.interop.apache_kafka import ApacheKafka, ApacheKafkaUnavailable
from tests.interop.spark_jars import spark_kafka_jars
from tests.interop.spark_peers import OURS, THEIRS, read, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    try:
        spark_kafka_jars()
    except ApacheKafkaUnavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
    made = session(tmp_path_factory.mktemp("spark"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """`t`: 2 x 100 records; `cut`: 20 to 49 of 50; `txn`: a committed, an aborted transaction."""
    with Broker() as broker:
        broker.create_topic("t", partitions=2)
        fill(broker, "t", 100, (0, 1))
        broker.create_topic("cut")
        fill(broker, "cut", 50)
        delete_records(broker, "cut", before=20)
        broker.create_topic("txn")
        write_transaction(broker, "txn", b"a", b"b")
        write_transaction(broker, "txn", b"c", committed=False)
        yield broker


def offsets(first: int, second: int, topic: str = "t") -> str:
    return f'{{"{topic}":{{"0":{first},"1":{second}}}}}'


BEYOND = {"startingOffsets": offsets(50, 0), "endingOffsets": offsets(170, 5)}
WITHIN = {"startingOffsets": offsets(10, -2), "endingOffsets": offsets(20, -1)}
LATE = str(FIRST_MS + 2000)

ROWS: dict[str, dict[str, str]] = {
    "pattern": {"subscribePattern": "t", "includeHeaders": "true"},
    "assign": {"assign": '{"t":[1,7]}'},
    "offsets": {"subscribe": "t", **WITHIN},
    "beyond": {"subscribe": "t", **BEYOND, "failOnDataLoss": "false"},
    "times": {
        "subscribe": "t",
        "startingTimestamp": str(FIRST_MS + 10),
        "endingOffsetsByTimestamp": offsets(FIRST_MS + 20, FIRST_MS + 5000),
    },
    "no match": {
        "subscribe": "t",
        "startingTimestamp": LATE,
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "split": {"subscribe": "t", "minPartitions": "5"},
    "retention": {
        "subscribe": "cut", "startingOffsets": '{"cut":{"0":10}}', "failOnDataLoss": "false",
    },
    "read_committed": {"subscribe": "txn", "kafka.isolation.level": "read_committed"},
    "marker": {
        "subscribe": "txn",
        "startingOffsets": '{"txn":{"0":2}}', "endingOffsets": '{"txn":{"0":3}}',
    },
}  # fmt: skip
MORE_ROWS: dict[str, dict[str, str]] = {
    "plain": {"subscribe": "t"},
    "blanks": {"subscribe": " t , "},
    "no such pattern": {"subscribePattern": "^x"},
    "assign nothing": {"assign": "{}"},
    "far beyond": {
        "subscribe": "t",
        "startingOffsets": offsets(150, 0),
        "endingOffsets": offsets(170, 5),
        "failOnDataLoss": "false",
    },
    "times by partition": {
        "subscribe": "t",
        "startingOffsetsByTimestamp": offsets(FIRST_MS + 5, FIRST_MS + 50),
    },
    "small tasks": {"subscribe": "t", "maxRecordsPerPartition": "7"},
    "of a stream": {"subscribe": "t", "maxOffsetsPerTrigger": "7"},
    "unknown": {"subscribe": "t", "unknown": "7"},
    "of a sink": {"subscribe": "t", "topic": "7", "kafka.linger.ms": "3"},
    "of the client": {"subscribe": "t", "kafka.max.poll.records": "3", "kafka.group.id": "g"},
    "uncommitted": {"subscribe": "txn"},
}

ERRORS: dict[str, tuple[dict[str, str], str]] = {
    "start behind the log": (
        {"subscribe": "t", "startingOffsets": offsets(150, -2)},
        "start offset 150 is greater than the",
    ),
    "beyond": ({"subscribe": "t", **BEYOND}, "Some data may have been lost"),
    "missing": ({"subscribe": "missing"}, "UnknownTopicOrPartition"),
    "no match": (
        {"subscribe": "t", "startingTimestamp": LATE},
        "No offset matched from request of topic-partition",
    ),
}
MORE_ERRORS: dict[str, tuple[dict[str, str], str]] = {
    "nothing": ({}, "One of the following options must be specified for Kafka source"),
    "two": ({"subscribe": "t", "assign": "{}"}, "Only one of the following options can be"),
    "no topic": ({"subscribe": " "}, "No topics to subscribe to as specified value for option"),
    "no pattern": ({"subscribePattern": " "}, "Pattern to subscribe is empty as specified value"),
    "no partition": ({"assign": "x"}, "No topicpartitions to assign as specified value for"),
    "latest start": ({"subscribe": "t", "startingOffsets": "latest"}, "can't be latest for batch"),
    "earliest end": ({"subscribe": "t", "endingOffsets": "earliest"}, "can't be earliest for"),
    "-1": ({"subscribe": "t", "startingOffsets": offsets(-1, 5)}, "t-0 can't be latest for batch"),
    "-2": ({"subscribe": "t", "endingOffsets": offsets(-2, 5)}, "t-0 can't be earliest for batch"),
    "turned": (
        {"subscribe": "t", "startingOffsets": offsets(50, 0), "endingOffsets": offsets(40, 5)},
        "specified start offset 50 is greater than the end offset 40 for topic t partition 0",
    ),
    "turned times": (
        {
            "subscribe": "t",
            "startingTimestamp": str(FIRST_MS + 20),
            "endingTimestamp": str(FIRST_MS + 10),
        },
        "start offset 20 is greater than the",
    ),
    "not a time": ({"subscribe": "t", "startingTimestamp": "noon"}, "Expected a single long value"),
    "retention": (
        {"subscribe": "cut", "startingOffsets": '{"cut":{"0":10}}'},
        "Some data may have been lost",
    ),
    "no tasks": ({"subscribe": "t", "minPartitions": "0"}, "minPartitions must be positive"),
    "reset": (
        {"subscribe": "t", "kafka.auto.offset.reset": "latest"},
        "Kafka option 'auto.offset.reset' is not supported",
    ),
    "commit": (
        {"subscribe": "t", "kafka.enable.auto.commit": "true"},
        "Kafka option 'enable.auto.commit' is not supported",
    ),
    "deserializer": (
        {"subscribe": "t", "kafka.value.deserializer": "x"},
        "Kafka option 'value.deserializer' is not supported",
    ),
}
PATIENCE = {"kafkaConsumer.pollTimeoutMs": "2000"}  # the JVM connector waits for it at the end


def cases(slice_: dict[str, Any], rest: dict[str, Any]) -> list[Any]:
    soak = [pytest.param(case, id=name, marks=pytest.mark.soak) for name, case in rest.items()]
    return [*(pytest.param(case, id=name) for name, case in slice_.items()), *soak]


@pytest.mark.parametrize("options", cases(ROWS, MORE_ROWS))
def test_rows_are_the_same(spark: SparkSession, broker: Broker, options: dict[str, str]) -> None:
    servers = broker.bootstrap_servers
    theirs = read(spark, THEIRS, servers, {**PATIENCE, **options})
    assert theirs.error == ""
    assert read(spark, OURS, servers, {**PATIENCE, **options}) == theirs


@pytest.mark.parametrize("case", cases(ERRORS, MORE_ERRORS))
def test_errors_say_the_same(
    spark: SparkSession, broker: Broker, case: tuple[dict[str, str], str]
) -> None:
    options, words = case
    for source in (THEIRS, OURS):
        outcome = read(spark, source, broker.bootstrap_servers, {**PATIENCE, **options})
        assert words in outcome.error, source


def test_all_columns_are_the_same_on_apache_kafka(spark: SparkSession, apache: ApacheKafka) -> None:
    servers = apache.bootstrap_servers
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with KafkaProducer(bootstrap_servers=servers, compression_type=codec) as producer:
            for number in range(50):
                producer.send(
                    f"columns-{codec}",
                    value=None if number % 7 == 0 else b"v%d" % number * number,
                    key=None if number % 5 == 1 and number % 7 else b"",
                    headers=[("h", b"1"), ("h", None), ("\N{SNOWMAN}", b"")][: number % 4],
                    timestamp_ms=FIRST_MS + number,
                    partition=number % 4,
                )
    options = {"subscribePattern": "^columns-", "includeHeaders": "true"}
    theirs = read(spark, THEIRS, servers, options)
    assert len(theirs.rows) == 250
    assert read(spark, OURS, servers, options) == theirs


# --- streams -------------------------------------------------------------------------------------


def run_stream(
    spark: SparkSession, source: str, servers: str, folder: Path, **options: str
) -> list[list[tuple[int, int]]]:
    """Run a stream until it has caught up: the offsets of each batch that has rows."""
    batches: list[list[tuple[int, int]]] = []

    def keep(frame: Any, _: int) -> None:
        rows = sorted((row.partition, row.offset) for row in frame.collect())
        if rows:
            batches.append(rows)

    stream = spark.readStream.format(source).option("kafka.bootstrap.servers", servers)
    given = {"subscribe": "s", "startingOffsets": "earliest", **options}
    query = (
        stream.options(**given)
        .load()
        .select("partition", "offset")
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return batches


def test_batches_of_a_stream_have_the_same_bounds(spark: SparkSession, tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("s", partitions=3)
        fill(broker, "s", 70, (0,))
        fill(broker, "s", 13, (1, 2))
        theirs, ours = (
            run_stream(
                spark,
                source,
                broker.bootstrap_servers,
                tmp_path / source,
                maxOffsetsPerTrigger="29",
            )
            for source in (THEIRS, OURS)
        )
    assert len(theirs) > 2
    assert ours == theirs


def test_checkpoints_are_taken_over_and_back(spark: SparkSession, tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("s", partitions=2)
        for turn, source in enumerate((THEIRS, OURS, THEIRS, OURS)):
            fill(broker, "s", 10, (0, 1))
            (rows,) = run_stream(spark, source, broker.bootstrap_servers, tmp_path)
            new = range(turn * 10, turn * 10 + 10)
            assert rows == [(partition, offset) for partition in (0, 1) for offset in new]
