"""`df.write` and `df.writeStream` through Spark: threads, options, errors."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from broker_stub import Broker
from tests.spark.topics import read_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def in_thread(work: object) -> None:
    """Run `work` on another Python thread; raises what it raised."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def test_a_batch_is_written_from_another_python_thread(
    spark: SparkSession, kafka_broker: Broker
) -> None:
    """Bug 6 of issue 17: DATA_SOURCE_NOT_FOUND."""
    frame = spark.range(10).selectExpr("cast(id as string) value")
    writer = frame.write.format("pykafka").mode("append").option("topic", "out")
    servers = kafka_broker.bootstrap_servers
    in_thread(lambda: writer.option("kafka.bootstrap.servers", servers).save())
    in_thread(
        lambda: (
            frame.write.format("pykafka")
            .mode("append")
            .option("kafka.bootstrap.servers", servers)
            .save(topic="out")
        )
    )
    assert len(read_all(servers, "out")) == 20


def test_a_stream_is_started_from_another_python_thread(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    """Bug 6 of issue 17, for `writeStream`."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("a\nb\n")

    def start() -> None:
        query = (
            spark.readStream.text(str(tmp_path / "in"))
            .writeStream.format("pykafka")
            .option("kafka.bootstrap.servers", kafka_broker.bootstrap_servers)
            .option("topic", "out")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(100)

    in_thread(start)
    assert len(read_all(kafka_broker.bootstrap_servers, "out")) == 2
