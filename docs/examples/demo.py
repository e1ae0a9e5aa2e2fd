"""`make demo`: the whole story in half a minute, on one machine, with nothing set up by hand.

An embedded broker starts; a producer publishes page views as JSON; a group of three consumers
reads them; a Spark streaming query counts them per page and minute and writes the counts back to
a topic; the counts are read and shown. Then everything stops by itself.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import spark_connector
from broker_stub import Broker
from pyclient import KafkaConsumer, KafkaProducer

EVENTS = 20_000
CONSUMERS = 3
VIEWS, COUNTS = "page-views", "page-counts"
PAGES = ("/", "/docs", "/pricing", "/blog", "/about")
START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
MINUTES = 5
SCHEMA = "page string, at timestamp"


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
        broker.create_topic(VIEWS, partitions=6)
        broker.create_topic(COUNTS, partitions=1)
        expected = publish(broker.bootstrap_servers)
        read = consume_in_a_group(broker.bootstrap_servers)
        counts = count_with_spark(broker.bootstrap_servers)
    show(counts)
    right = sum(read) == EVENTS and counts == expected
    say("end", f"{'all figures agree' if right else 'FIGURES DIFFER'}, {since(started)} in all")
    return 0 if right else 1


def publish(servers: str) -> Counter[tuple[str, str]]:
    """Send the events; what Spark should count comes back."""
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
            page, second = dice.choice(PAGES), dice.randrange(MINUTES * 60)
            at = datetime.fromtimestamp(START.timestamp() + second, UTC)
            event = {"user": f"user-{number % 500}", "page": page, "at": at.isoformat()}
            producer.send(VIEWS, value=event, key=event["user"])
            expected[f"{at:%H:%M}", page] += 1
            if time.monotonic() - reported > 0.5:
                reported = time.monotonic()
                say("producer", f"{number + 1:,} events sent")
        producer.flush()
        figures = producer.metrics()["producer-metrics"]
    seconds = time.monotonic() - started
    say("producer", f"{EVENTS:,} JSON events acknowledged in {seconds:.2f} s, idempotent, acks=all")
    say(
        "producer",
        f"{figures['batch-size-avg']:,.0f} bytes a batch, compressed to "
        f"{figures['compression-rate-avg']:.0%}, {figures['records-per-request-avg']:,.0f} records "
        f"a request, {figures['request-latency-avg']:.1f} ms a request",
    )
    return expected


def consume_in_a_group(servers: str) -> list[int]:
    """Read the events with three members of one group; how many each one got comes back."""
    counts = [0] * CONSUMERS
    everything_read = threading.Event()

    def run(index: int) -> None:
        with KafkaConsumer(
            VIEWS,
            bootstrap_servers=servers,
            group_id="demo",
            auto_offset_reset="earliest",
            value_deserializer=json.loads,
        ) as consumer:
            while not everything_read.is_set():
                for records in consumer.poll(timeout_ms=200).values():
                    counts[index] += len(records)
                if sum(counts) >= EVENTS:
                    everything_read.set()
            partitions = sorted(one.partition for one in consumer.assignment())
            say(f"consumer {index + 1}", f"{counts[index]:,} events of partitions {partitions}")

    threads = [threading.Thread(target=run, args=(index,)) for index in range(CONSUMERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return counts


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
    print(f"{who:>11}  {what}", flush=True)


def since(start: float) -> str:
    """The time since `start`, readable."""
    seconds = time.monotonic() - start
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


if __name__ == "__main__":
    sys.exit(main())
