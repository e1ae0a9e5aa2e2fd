"""Every column, null, header, codec and timestamp type, written and read back through Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker_stub import Broker
from pyclient import KafkaAdminClient
from pyclient.admin import NewTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIME = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
BAD = b"\xff\x00\xfe"
ROWS: list[tuple[Any, ...]] = [
    (b"key", b"value", 0, None, TIME),
    (None, b"no key", 1, [("a", b"1"), ("a", None), ("", b"")], TIME),
    (b"", b"", 2, [], TIME),
    (b"tombstone", None, 1, [("h", BAD)], TIME),
    (None, None, 0, None, TIME),
    (BAD, BAD * 1000, 2, None, TIME),
]
SCHEMA = (
    "key binary, value binary, partition int, headers array<struct<key: string, value: binary>>, "
    "timestamp timestamp"
)


@contextmanager
def our_broker(_: pytest.FixtureRequest) -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@contextmanager
def apache(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.getfixturevalue("apache").bootstrap_servers


@pytest.fixture(params=[our_broker, apache], ids=lambda one: one.__name__)
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    with request.param(request) as found:
        yield found


def write(frame: DataFrame, servers: str, topic: str, codec: str = "none") -> None:
    options = {"kafka.bootstrap.servers": servers, "topic": topic, "includeTimestamp": "true"}
    writer = frame.write.format("pykafka").mode("append").options(**options)
    writer.option("kafka.compression.type", codec).save()


def plain(row: Any) -> tuple[Any, ...]:
    headers = row.headers and [
        (one.key, None if one.value is None else bytes(one.value)) for one in row.headers
    ]
    key, value = (None if one is None else bytes(one) for one in (row.key, row.value))
    return key, value, row.partition, headers, row.timestamp.astimezone(UTC)


def expected(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """A record without headers has a null there, however it was written."""
    return sorted(((*row[:3], row[3] or None, row[4]) for row in rows), key=repr)


def test_what_is_written_is_what_is_read(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topics = [f"trip-{codec}" for codec in CODECS]
    appended = NewTopic(
        "trip-appended", 3, 1, topic_configs={"message.timestamp.type": "LogAppendTime"}
    )
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        names = [*topics, "trip-copied"]
        admin.create_topics([*(NewTopic(name, 3, 1) for name in names), appended])
    frame = spark.createDataFrame(ROWS, SCHEMA).coalesce(1)
    started = datetime.now(UTC)
    for codec, topic in zip(CODECS, topics, strict=True):
        write(frame, servers, topic, codec)
    write(frame, servers, "trip-appended", "lz4")

    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": ",".join([*topics, "trip-appended"]),
        "includeHeaders": "true",
    }
    read = spark.read.format("pykafka").options(**options).load().collect()
    for topic in topics:
        of_topic = [row for row in read if row.topic == topic]
        assert sorted(map(plain, of_topic), key=repr) == expected(ROWS), topic
        assert {row.timestampType for row in of_topic} == {0}
    of_broker = [row for row in read if row.topic == "trip-appended"]
    assert len(of_broker) == len(ROWS)
    assert {row.timestampType for row in of_broker} == {1}
    assert all(row.timestamp.astimezone(UTC) >= started.replace(microsecond=0) for row in of_broker)

    query = (
        spark.readStream.format("pykafka")
        .options(**options)
        .option("subscribe", topics[-1])
        .option("startingOffsets", "earliest")
        .load()
        .drop("topic")
        .writeStream.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "trip-copied")
        .option("includeTimestamp", "true")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(200)
    options["subscribe"] = "trip-copied"
    copied = spark.read.format("pykafka").options(**options).load().collect()
    assert sorted(map(plain, copied), key=repr) == expected(ROWS)
