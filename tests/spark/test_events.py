"""A stream-stream join and a windowed aggregation with watermarks equal a plain computation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from broker_stub import Broker
from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from spark_connector import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLICE, ALL = 20_000, 5_000_000
START = 1_800_000_000  # in seconds
SPAN = 6_000  # seconds of event time, however many events there are
PAGES = 7
STEP = 100_000  # events sent at once
LATE = "10 minutes"


class Events:
    """Four impressions for each click; a click is up to a minute after its impression."""

    def __init__(self, count: int) -> None:
        self.shown = count * 4 // 5
        self.clicked = count // 5

    def impression(self, number: int) -> tuple[int, str, int]:
        return number, f"/{number * 31 % PAGES}", START + number * SPAN // self.shown

    def click(self, number: int) -> tuple[int, int]:
        impression = number * 4
        return impression, self.impression(impression)[2] + number % 90  # some come too late

    def joined(self) -> Counter[str]:
        """How many clicks came within a minute, by page."""
        pages: Counter[str] = Counter()
        for number in range(self.clicked):
            impression, at = self.click(number)
            _, page, shown = self.impression(impression)
            pages[page] += at <= shown + 60
        return pages

    def windows(self) -> Counter[tuple[str, int]]:
        """How many impressions each page had in each minute."""
        counted: Counter[tuple[str, int]] = Counter()
        for number in range(self.shown):
            _, page, at = self.impression(number)
            counted[page, at // 60 * 60] += 1
        return counted


def impressions(events: Events) -> Iterator[str]:
    for number in range(events.shown):
        _, page, at = events.impression(number)
        yield f'{{"id":{number},"page":"{page}","at":{at}}}'


def clicks(events: Events) -> Iterator[str]:
    for number in range(events.clicked):
        impression, at = events.click(number)
        yield f'{{"id":{impression},"at":{at}}}'


def send(servers: str, topic: str, values: Iterator[str]) -> None:
    """Send events to two partitions in turn: neither runs ahead in event time."""
    with KafkaProducer(bootstrap_servers=servers) as producer:
        while some := list(islice(values, STEP)):
            turns = pa.array([row % 2 for row in range(len(some))], pa.int32())
            table = pa.table({"value": some, "partition": turns})
            assert producer.send_arrow(topic, table).failures(120) == {}


def end_of_time(servers: str, *topics: str) -> None:
    """An event behind all others, in every partition: what is open before it gets emitted."""
    event = json.dumps({"id": -1, "page": "end", "at": START + 10 * SPAN}).encode()
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for topic in topics:
            for partition in producer.partitions_for(topic):
                producer.send(topic, event, partition=partition)


def stream(spark: SparkSession, servers: str, topic: str, limit: int) -> DataFrame:
    from pyspark.sql import functions as f

    value = f.from_json(f.col("value").cast("string"), "id long, page string, at long").alias("e")
    return (
        spark.readStream.format(FORMAT)
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", limit)
        .load()
        .select(value)
        .select("e.id", "e.page", f.timestamp_seconds("e.at").alias("at"))
        .withWatermark("at", LATE)
    )


def run(frame: DataFrame, servers: str, topic: str, folder: Path) -> None:
    """Write all that is there to a topic."""
    query = (
        frame.writeStream.format(FORMAT)
        .option("kafka.bootstrap.servers", servers)
        .option("topic", topic)
        .option("checkpointLocation", str(folder / topic))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(3600)
    assert query.exception() is None


def read(servers: str, topic: str) -> Iterator[Any]:
    """The values of a topic, from JSON."""
    with KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False) as consumer:
        numbers = consumer.partitions_for_topic(topic) or set()
        partitions = [TopicPartition(topic, number) for number in numbers]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        while any(consumer.position(one) < ends[one] for one in partitions):
            table = consumer.poll_arrow(timeout_ms=10_000)
            for value in [] if table is None else table["value"].to_pylist():
                yield json.loads(value)


def check(spark: SparkSession, servers: str, folder: Path, count: int) -> None:
    from pyspark.sql import functions as f

    events = Events(count)
    send(servers, "impressions", impressions(events))
    send(servers, "clicks", clicks(events))
    batches = 4 if count == SLICE else 20

    shown = stream(spark, servers, "impressions", events.shown // batches)
    clicked = stream(spark, servers, "clicks", events.clicked // batches).drop("page")
    in_time = "i.id = c.id AND c.at >= i.at AND c.at <= i.at + INTERVAL 1 MINUTE"
    joined = shown.alias("i").join(clicked.alias("c"), f.expr(in_time))
    run(joined.select(f.to_json(f.struct("i.page")).alias("value")), servers, "joined", folder)

    counted = shown.groupBy(f.window("at", "1 minute"), "page").count()
    window = f.struct("page", "count", f.unix_timestamp("window.start").alias("start"))
    windows = counted.select(f.to_json(window).alias("value"))
    for _ in range(2):  # a watermark moves with the batch before
        end_of_time(servers, "impressions")
        run(windows, servers, "windows", folder)

    assert Counter(one["page"] for one in read(servers, "joined")) == events.joined()
    found = [((one["page"], one["start"]), one["count"]) for one in read(servers, "windows")]
    assert len(found) == len(dict(found))  # each window once
    assert dict(found) == events.windows()


def test_a_slice_of_the_events(spark: SparkSession, tmp_path: Path) -> None:
    with Broker(config={"num.partitions": "2"}) as broker:
        check(spark, broker.bootstrap_servers, tmp_path, SLICE)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_all_events(spark: SparkSession, tmp_path: Path) -> None:
    """By `make soak-spark`."""
    with Broker(data_dir=tmp_path / "log", config={"num.partitions": "2"}) as broker:
        check(spark, broker.bootstrap_servers, tmp_path, ALL)
