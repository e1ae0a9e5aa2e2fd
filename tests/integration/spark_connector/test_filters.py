"""Filters that the source takes note of: less is fetched, and every row that passes comes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from broker_stub import Broker
from pyclient import KafkaProducer
from pyclient.protocol.messages.fetch import FetchRequest
from spark_connector.data_source import KafkaDataSource
from tests.integration.spark_connector.miniature_spark import options_of, rows_of
from tests.integration.spark_connector.topics import fill

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def read(broker: Broker, filters: list[Filter], **options: Any) -> list[dict[str, Any]]:
    """What the source hands to Spark."""
    given = options_of(broker, {"pushFilters": "true", **options})
    reader: Any = KafkaDataSource(given).reader(StructType())
    assert list(reader.pushFilters(filters)) == filters  # Spark applies all of them again
    return [row for task in reader.partitions() for row in rows_of(reader, task)]


@pytest.fixture
def day(kafka_broker: Broker) -> Broker:
    """Records of a day, one each 10 seconds, in batches of their own, in two partitions."""
    kafka_broker.create_topic("t", partitions=2)
    with KafkaProducer(
        bootstrap_servers=kafka_broker.bootstrap_servers, batch_size=2000, linger_ms=0
    ) as producer:
        start_ms = int(MIDNIGHT.timestamp() * 1000)
        for number in range(8640):
            at_ms = start_ms + number * 10_000
            producer.send("t", b"x" * 2000, partition=number % 2, timestamp_ms=at_ms)
    return kafka_broker


class FetchedBytes:
    """An interceptor of the broker that adds up the records in its answers to Fetch requests."""

    total = 0

    def served(self, served: Any) -> Any:
        return served

    def on_request(self, request: Any, context: Any) -> None: ...

    def on_response(self, request: Any, response: Any, context: Any) -> None:
        if isinstance(request, FetchRequest):
            for topic in response.responses:
                for partition in topic.partitions:
                    records = partition.records or b""
                    self.total += getattr(records, "nbytes", None) or len(records)


def test_one_minute_of_a_day_reads_a_hundredth_of_the_bytes(day: Broker) -> None:
    noon = MIDNIGHT + timedelta(hours=12)
    filters: list[Filter] = [
        IsNotNull(("timestamp",)),
        GreaterThanOrEqual(("timestamp",), noon),
        LessThan(("timestamp",), noon + MINUTE),
    ]
    fetched = FetchedBytes()
    day.call(lambda node: node.dispatcher.interceptors.append(fetched))
    read(day, [], subscribe="t")
    all_bytes, fetched.total = fetched.total, 0
    rows = read(day, filters, subscribe="t")
    times = sorted(row["timestamp"] for row in rows)
    kept = [at for at in times if noon <= at < noon + MINUTE]
    assert kept == [noon + timedelta(seconds=10 * n) for n in range(6)]
    assert 0 < fetched.total < all_bytes / 100


def test_timestamps_out_of_order_are_found(kafka_broker: Broker) -> None:
    at = [0, 10, 3, 5, 60, 4, 100, 30, 400]  # seconds; 4 comes after 60, 30 after 100
    kafka_broker.create_topic("t")
    start_ms = int(MIDNIGHT.timestamp() * 1000)
    with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        for seconds in at:
            producer.send("t", b"%d" % seconds, timestamp_ms=start_ms + 1000 * seconds)
    until = MIDNIGHT + timedelta(seconds=6)
    rows = read(kafka_broker, [LessThan(("timestamp",), until)], subscribe="t")
    assert {b"0", b"3", b"4", b"5"} <= {row["value"] for row in rows}
    assert b"400" not in {row["value"] for row in rows}  # farther than a minute
    strict = {"pushFilters.maxDisorder": "0"}
    rows = read(kafka_broker, [LessThan(("timestamp",), until)], subscribe="t", **strict)
    assert [row["value"] for row in rows] == [b"0"]


@pytest.mark.parametrize(
    ("filters", "offsets"),
    [
        ([EqualTo(("partition",), 1)], {(1, n) for n in range(5)}),
        ([In(("partition",), (0, 7))], {(0, n) for n in range(5)}),
        ([GreaterThan(("partition",), 0)], {(1, n) for n in range(5)}),
        ([GreaterThan(("offset",), 2), LessThanOrEqual(("offset",), 3)], {(0, 3), (1, 3)}),
        ([EqualTo(("offset",), 4)], {(0, 4), (1, 4)}),
        ([EqualTo(("topic",), "other")], set()),
        ([EqualTo(("key",), b"k")], {(p, n) for p in (0, 1) for n in range(5)}),
    ],
)
def test_partitions_and_offsets_are_narrowed(
    kafka_broker: Broker, filters: list[Filter], offsets: set[tuple[int, int]]
) -> None:
    kafka_broker.create_topic("t", partitions=2)
    fill(kafka_broker, "t", 5, (0, 1))
    rows = read(kafka_broker, filters, subscribe="t")
    assert {(row["partition"], row["offset"]) for row in rows} == offsets


def test_a_millisecond_is_kept_where_spark_compares_microseconds(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 5)
    at = datetime.fromtimestamp(1_700_000_000.002, UTC) + timedelta(microseconds=500)
    strict = {"subscribe": "t", "pushFilters.maxDisorder": "0"}
    rows = read(kafka_broker, [LessThan(("timestamp",), at)], **strict)
    assert [row["offset"] for row in rows] == [0, 1, 2]
    rows = read(kafka_broker, [GreaterThan(("timestamp",), at)], **strict)
    assert {3, 4} <= {row["offset"] for row in rows}
