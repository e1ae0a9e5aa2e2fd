"""`spark.read` and `df.write` on our broker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from broker_stub import Broker
from tests.spark.topics import fill, read_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load(spark: SparkSession, servers: str, **options: str) -> DataFrame:
    reader = spark.read.format("pykafka").option("kafka.bootstrap.servers", servers)
    return reader.options(**options).load()


def test_a_batch_read_has_the_jvm_connectors_schema_and_every_record(
    spark: SparkSession, kafka_broker: Broker
) -> None:
    kafka_broker.create_topic("t", partitions=3)
    fill(kafka_broker.bootstrap_servers, "t", [f"v{n}".encode() for n in range(1000)], 3)
    frame = load(spark, kafka_broker.bootstrap_servers, subscribe="t")
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )
    rows = {(row.partition, row.offset): row for row in frame.collect()}
    assert len(rows) == 1000
    row = rows[1, 1]  # the fifth record
    assert (bytes(row.key), bytes(row.value), row.topic, row.timestampType) == (
        b"k4",
        b"v4",
        "t",
        0,
    )
    # Spark gives naive datetimes in the machine's own time zone.
    assert row.timestamp.astimezone(UTC) == datetime.fromtimestamp(1_700_000_000.004, UTC)


def test_headers_come_when_asked_for_and_are_null_where_there_are_none(
    spark: SparkSession, kafka_broker: Broker
) -> None:
    fill(kafka_broker.bootstrap_servers, "t", [b"a", b"b"])
    frame = load(spark, kafka_broker.bootstrap_servers, subscribe="t", includeHeaders="true")
    headers = [row.headers for row in frame.orderBy("offset").collect()]
    assert headers[0] is None
    assert [(one.key, bytes(one.value)) for one in headers[1]] == [("n", b"1")]


def test_offsets_bound_what_is_read(spark: SparkSession, kafka_broker: Broker) -> None:
    kafka_broker.create_topic("t", partitions=2)
    fill(kafka_broker.bootstrap_servers, "t", [b"v"] * 20, 2)
    frame = load(
        spark,
        kafka_broker.bootstrap_servers,
        subscribe="t",
        startingOffsets='{"t":{"0":3,"1":-2}}',
        endingOffsets='{"t":{"0":5,"1":-1}}',
    )
    offsets = [
        (row.partition, row.offset) for row in frame.orderBy("partition", "offset").collect()
    ]
    assert offsets == [(0, 3), (0, 4), *((1, offset) for offset in range(10))]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "One of the following options must be specified"),
        ({"subscribe": "t", "assign": "{}"}, "Only one of the following options"),
        ({"subscribe": "t", "startingOffsets": "latest"}, "can't be latest for batch"),
        ({"subscribe": "t", "minPartitions": "0"}, "minPartitions must be positive"),
        ({"subscribe": "missing"}, "topic 'missing' does not exist"),
    ],
)
def test_a_wrong_option_is_named(
    spark: SparkSession, kafka_broker_without_creation: Broker, options: dict[str, str], words: str
) -> None:
    with pytest.raises(PySparkException, match=words):
        load(spark, kafka_broker_without_creation.bootstrap_servers, **options).collect()


@pytest.fixture
def kafka_broker_without_creation() -> Any:
    with Broker(config={"auto.create.topics.enable": "false"}) as broker:
        yield broker


def test_what_is_written_is_what_a_consumer_reads(
    spark: SparkSession, kafka_broker: Broker
) -> None:
    frame = spark.range(1000).selectExpr(
        "cast(id as string) key",
        "cast(concat('value ', id) as binary) value",
        "array(named_struct('key', 'n', 'value', cast(cast(id as string) as binary))) headers",
    )
    frame.write.format("pykafka").mode("append").option(
        "kafka.bootstrap.servers", kafka_broker.bootstrap_servers
    ).option("topic", "out").save()
    records = {record.key: record for record in read_all(kafka_broker.bootstrap_servers, "out")}
    assert len(records) == 1000
    assert records[b"7"].value == b"value 7"
    assert list(records[b"7"].headers) == [("n", b"7")]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["'x' key"], "Required attribute 'value' not found"),
        (["1 value", "'t' topic"], "value attribute unsupported type int"),
        (["'x' value"], "topic option required when no 'topic' attribute"),
    ],
)
def test_rows_that_cannot_become_records_are_refused_before_any_task(
    spark: SparkSession, kafka_broker: Broker, columns: list[str], words: str
) -> None:
    writer = spark.range(1).selectExpr(*columns).write.format("pykafka").mode("append")
    if "topic option" not in words:
        writer = writer.option("topic", "out")
    with pytest.raises(PySparkException, match=words):
        writer.option("kafka.bootstrap.servers", kafka_broker.bootstrap_servers).save()
    assert not read_all(kafka_broker.bootstrap_servers, "out")
