"""`make demo`: the whole story in half a minute, on one machine, with nothing set up by hand.

An embedded broker starts; two consumers form a group; a producer publishes page views as JSON, and
the group reads them; halfway a third consumer joins, and the group rebalances while it reads; the
lag goes to zero. A Spark streaming query counts the page views per page and minute and writes the
counts back to a topic; the counts are read and shown. Then everything stops by itself.
"""

import json
import logging
import math
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import spark_connector
from broker_stub import Broker
from pyclient import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition

EVENTS = 60_000
CONSUMERS = 3
PARTITIONS = 6
VIEWS, COUNTS = "page-views", "page-counts"
PAGES = ("/", "/docs", "/pricing", "/blog", "/about")
START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
MINUTES = 5
SCHEMA = "page string, at timestamp"
REPORT_SECONDS = 0.25
POLLED = 100
WORK_SECONDS = 0.005  # what the events of a poll cost a consumer, beside reading them


def main() -> int:
    """Run the story; 0 when every figure came out right."""
    try:
        spark_connector.require_java()
    except spark_connector.MissingJavaError as problem:
        print(f"demo: {problem}", file=sys.stderr)
        return 1
    logging.basicConfig(level=logging.WARNING)
    started = time.monotonic()
    with Broker() as broker:
        say("broker", f"listening on {broker.bootstrap_servers} after {since(started)}")
        broker.create_topic(VIEWS, partitions=PARTITIONS)
        broker.create_topic(COUNTS, partitions=1)
        readers = start_group(broker.bootstrap_servers)
        third = Reader(CONSUMERS - 1, broker.bootstrap_servers)
        expected, figures = publish(broker.bootstrap_servers, at_half=third.start)
        readers.append(third)
        watch_lag(readers)
        counts = count_with_spark(broker.bootstrap_servers)
    show(counts)
    summarize(figures)
    right = sum(Reader.counts) == EVENTS and counts == expected
    say("end", f"{'all figures agree' if right else 'FIGURES DIFFER'}, {since(started)} in all")
    return 0 if right else 1


def publish(
    servers: str, at_half: Callable[[], None]
) -> tuple[Counter[tuple[str, str]], dict[str, float]]:
    """Send the events; what Spark should count comes back, and the producer's figures."""
    dice = random.Random(7)
    expected: Counter[tuple[str, str]] = Counter()
    started = reported = time.monotonic()
    with KafkaProducer(
        bootstrap_servers=servers,
        compression_type="lz4",
        key_serializer=str.encode,
        value_serializer=lambda event: json.dumps(event).encode(),
    ) as producer:
        for number in range(EVENTS):
            if number == EVENTS // 2:
                at_half()
            page, second = dice.choice(PAGES), dice.randrange(MINUTES * 60)
            at = datetime.fromtimestamp(START.timestamp() + second, UTC)
            event = {"user": f"user-{number % 500}", "page": page, "at": at.isoformat()}
            producer.send(VIEWS, value=event, key=event["user"])
            expected[f"{at:%H:%M}", page] += 1
            if time.monotonic() - reported > REPORT_SECONDS:
                reported = time.monotonic()
                say_live(number + 1, producer.metrics()["producer-metrics"])
        producer.flush()
        figures = producer.metrics()["producer-metrics"]
    seconds = time.monotonic() - started
    say("producer", f"{EVENTS:,} JSON events acknowledged in {seconds:.2f} s, idempotent, acks=all")
    return expected, figures


def say_live(sent: int, figures: dict[str, float]) -> None:
    """What the producer is at."""
    buffered = figures["buffer-total-bytes"] - figures["buffer-available-bytes"]
    latency_ms = figures["request-latency-avg"]
    latency = "no answer yet" if math.isnan(latency_ms) else f"{latency_ms:.1f} ms a request"
    say(
        "producer",
        f"{sent:>7,} events sent, {buffered / 1024:5,.0f} KB buffered,"
        f" {figures['requests-in-flight']:.0f} requests in flight, {latency}",
    )


def summarize(figures: dict[str, float]) -> None:
    """The producer's batches, compression and latencies."""
    batches = figures["byte-total"] / figures["batch-size-avg"]
    say(
        "producer",
        f"{batches:,.0f} batches in {figures['request-total']:,.0f} requests:"
        f" {figures['record-send-total'] / batches:,.0f} records and"
        f" {figures['batch-size-avg']:,.0f} bytes a batch, lz4 left"
        f" {figures['compression-rate-avg']:.0%} of them",
    )
    say(
        "producer",
        f"a batch waited {figures['record-queue-time-avg']:.1f} ms to be sent"
        f" ({figures['record-queue-time-max']:.1f} at most), a request took"
        f" {figures['request-latency-avg']:.1f} ms ({figures['request-latency-max']:.1f} at most);"
        f" {figures['record-retry-total']:.0f} retries, {figures['record-error-total']:.0f} errors",
    )


class Reader(threading.Thread, ConsumerRebalanceListener):
    """One of three members of a group: reads until all of them together have read everything."""

    counts: ClassVar = [0] * CONSUMERS
    everything_read = threading.Event()

    def __init__(self, index: int, servers: str) -> None:
        super().__init__(daemon=True)
        self._index = index
        self._servers = servers
        self._label = f"consumer {index + 1}"
        self.has_its_share = threading.Event()
        self.lag = 0

    def run(self) -> None:
        """Join the group, read until the end, leave."""
        with KafkaConsumer(
            bootstrap_servers=self._servers,
            group_id="demo",
            auto_offset_reset="earliest",
            partition_assignment_strategy=["cooperative-sticky"],
            heartbeat_interval_ms=100,  # by which a member learns of a rebalance
            max_poll_records=POLLED,
            value_deserializer=json.loads,
        ) as consumer:
            consumer.subscribe([VIEWS], listener=self)
            while not self.everything_read.is_set():
                for records in consumer.poll(timeout_ms=200).values():
                    self.counts[self._index] += len(records)
                    time.sleep(WORK_SECONDS)
                share = sorted(one.partition for one in consumer.assignment())
                self.lag = self._lag_of(consumer)
                if sum(self.counts) >= EVENTS:
                    self.everything_read.set()
            self.lag = self._lag_of(consumer)
        say(self._label, f"{self.counts[self._index]:,} events, of partitions {share} at last")

    @staticmethod
    def _lag_of(consumer: KafkaConsumer) -> int:
        return sum(consumer.lag(partition) or 0 for partition in consumer.assignment())

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Partitions have come, in a rebalance."""
        if assigned:
            say(self._label, f"gets partitions {sorted(one.partition for one in assigned)}")
            self.has_its_share.set()

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Partitions go to another member; of the others it reads on."""
        if not self.everything_read.is_set():
            say(self._label, f"gives up partitions {sorted(one.partition for one in revoked)}")


def watch_lag(readers: list[Reader]) -> None:
    """Show how far the group is behind, until it has read everything, a minute at the most."""
    for _ in range(int(60 / REPORT_SECONDS)):
        if Reader.everything_read.wait(REPORT_SECONDS):
            break
        report_lag(readers)
    for reader in readers:
        reader.join(60)
    report_lag(readers)


def report_lag(readers: list[Reader]) -> None:
    lag = sum(reader.lag for reader in readers)
    say("group", f"{sum(Reader.counts):>7,} events read, lag {lag:,}")


def start_group(servers: str) -> list[Reader]:
    """Two consumers, once each has partitions."""
    readers = [Reader(index, servers) for index in range(CONSUMERS - 1)]
    for reader in readers:
        reader.start()
    for reader in readers:
        if not reader.has_its_share.wait(60):
            raise TimeoutError("the group did not come together within a minute")
    say("group", f"{len(readers)} consumers share {PARTITIONS} partitions")
    return readers


def count_with_spark(servers: str) -> Counter[tuple[str, str]]:
    """Count events per page and minute in a streaming query, then read the counts it wrote."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    say("spark", "starting a local session ...")
    # Spark's Python workers must be this very Python, and nothing here leaves the machine.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("kafka-pyclient demo")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        spark_connector.register(spark)
        views = (
            spark.readStream.format("pykafka")
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", VIEWS)
            .option("startingOffsets", "earliest")
            .load()
            .select(f.from_json(f.col("value").cast("string"), SCHEMA).alias("event"))
        )
        minute = f.window("event.at", "1 minute").alias("minute")
        counts = views.groupBy(minute, "event.page").count()
        rows = counts.select(
            f.col("page").alias("key"),
            f.to_json(
                f.struct(f.date_format("minute.start", "HH:mm").alias("minute"), "page", "count")
            ).alias("value"),
        )
        with tempfile.TemporaryDirectory() as folder:
            query = (
                rows.writeStream.format("pykafka")
                .option("kafka.bootstrap.servers", servers)
                .option("topic", COUNTS)
                .option("checkpointLocation", str(Path(folder) / "checkpoint"))
                .outputMode("complete")
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination(120)
            rows_in = sum(progress["numInputRows"] for progress in query.recentProgress)
            say("spark", f"{rows_in:,} events in, counts per page and minute out to {COUNTS}")
    finally:
        spark.stop()
    return read_counts(servers)


def read_counts(servers: str) -> Counter[tuple[str, str]]:
    """The newest count of each page and minute."""
    found: Counter[tuple[str, str]] = Counter()
    with KafkaConsumer(
        COUNTS,
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        value_deserializer=json.loads,
        consumer_timeout_ms=2_000,
    ) as consumer:
        for record in consumer:
            found[record.value["minute"], record.value["page"]] = record.value["count"]
    return found


def show(counts: Counter[tuple[str, str]]) -> None:
    """A table: minutes down, pages across."""
    print(f"\n{'':8}" + "".join(f"{page:>10}" for page in PAGES))
    for minute in sorted({minute for minute, _ in counts}):
        print(f"{minute:8}" + "".join(f"{counts[minute, page]:>10,}" for page in PAGES))
    print()


def say(who: str, what: str) -> None:
    """One line of the story."""
    sys.stdout.write(f"{who:>11}  {what}\n")  # whole lines: several threads tell the story
    sys.stdout.flush()


def since(start: float) -> str:
    """The time since `start`, readable."""
    seconds = time.monotonic() - start
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


if __name__ == "__main__":
    sys.exit(main())
