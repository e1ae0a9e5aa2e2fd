"""`readStream` and `writeStream` on our broker: limits, checkpoints, restarts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker_stub import Broker
from tests.spark.topics import fill, read_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


def copy(spark: SparkSession, broker: Broker, folder: Path, **options: str) -> StreamingQuery:
    """Run a stream from topic `in` to topic `out` until it has caught up."""
    servers = broker.bootstrap_servers
    stream = spark.readStream.format("pykafka").option("kafka.bootstrap.servers", servers)
    query = (
        stream.option("subscribe", "in")
        .options(**{"startingOffsets": "earliest", **options})
        .load()
        .selectExpr("key", "value")
        .writeStream.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "out")
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(200)
    return query


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(broker.bootstrap_servers, topic)]


def test_a_stream_goes_on_from_its_checkpoint(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    kafka_broker.create_topic("in", partitions=2)
    first = [f"first {n}".encode() for n in range(100)]
    second = [f"second {n}".encode() for n in range(50)]
    fill(kafka_broker.bootstrap_servers, "in", first, 2)
    copy(spark, kafka_broker, tmp_path)
    assert sorted(values(kafka_broker, "out")) == sorted(first)
    fill(kafka_broker.bootstrap_servers, "in", second, 2)
    copy(spark, kafka_broker, tmp_path)
    assert sorted(values(kafka_broker, "out")) == sorted(first + second)


def test_a_batch_takes_no_more_than_its_limit_and_shares_it_by_lag(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    kafka_broker.create_topic("in", partitions=2)
    fill(kafka_broker.bootstrap_servers, "in", [b"v"] * 100, 2)
    query = copy(spark, kafka_broker, tmp_path, maxOffsetsPerTrigger="40")
    batches = [progress["numInputRows"] for progress in query.recentProgress]
    assert [rows for rows in batches if rows] == [40, 40, 20]
    assert len(values(kafka_broker, "out")) == 100


def test_the_checkpoint_has_the_jvm_connectors_shape(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    fill(kafka_broker.bootstrap_servers, "in", [b"v"] * 10)
    copy(spark, kafka_broker, tmp_path)
    fill(kafka_broker.bootstrap_servers, "in", [b"v"] * 5)
    copy(spark, kafka_broker, tmp_path)
    newest = max((tmp_path / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    assert newest.name == "1"  # a batch a run: what is beside the offsets makes none of its own
    offset = json.loads(newest.read_text().splitlines()[-1])
    assert offset.pop("in") == {"0": 15}
    assert list(offset.values()) == [{}]  # a topic without partitions, for the JVM connector


def test_a_stream_that_starts_at_the_latest_offset_reads_only_what_comes_after(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    fill(kafka_broker.bootstrap_servers, "in", [b"old"] * 10)
    copy(spark, kafka_broker, tmp_path, startingOffsets="latest")
    fill(kafka_broker.bootstrap_servers, "in", [b"new"] * 5)
    copy(spark, kafka_broker, tmp_path, startingOffsets="latest")
    written: list[Any] = values(kafka_broker, "out")
    assert written == [b"new"] * 5


def test_json_events_are_counted_in_windows(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    from pyspark.sql import functions as f

    events = [
        json.dumps({"page": f"/{n % 2}", "at": f"2026-01-01T12:0{n % 3}:00Z"}).encode()
        for n in range(60)
    ]
    servers = kafka_broker.bootstrap_servers
    fill(servers, "in", events)
    stream = spark.readStream.format("pykafka").option("kafka.bootstrap.servers", servers)
    parsed = (
        stream.option("subscribe", "in")
        .option("startingOffsets", "earliest")
        .load()
        .select(f.from_json(f.col("value").cast("string"), "page string, at timestamp").alias("e"))
    )
    counts = parsed.groupBy(f.window("e.at", "1 minute"), "e.page").count()
    query = (
        counts.select(f.to_json(f.struct("page", "window.start", "count")).alias("value"))
        .writeStream.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "out")
        .option("checkpointLocation", str(tmp_path))
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(200)
    # Complete mode writes every count again with each batch: the newest of each window counts.
    written = [json.loads(value or b"") for value in values(kafka_broker, "out")]
    counted = {(one["page"], one["start"]): one["count"] for one in written}
    assert sorted((page, count) for (page, _), count in counted.items()) == (
        [("/0", 10)] * 3 + [("/1", 10)] * 3
    )
