"""The Spark connector against Spark's own, and a ceiling: `python -m tests.benchmarks.spark`.

One session (local[2]) has both connectors and reads the same topics of one broker in turn; medians
of the rounds, and of each round's ratio. "Tuned" is the JVM connector with the settings that help
it most. The ceiling is a Python source that yields one ready Arrow batch again and again.
`--part NAME` measures one part (it may be repeated), `--list` names them. `BENCH_SCALE=0.1` makes
it a short try.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from broker_stub import Broker
from pyclient import KafkaProducer
from tests.benchmarks.parts import Row, parts_parser, print_heading, print_rows
from tests.interop.apache_kafka import ApacheKafkaUnavailable
from tests.interop.spark_jars import spark_kafka_jars
from tests.interop.spark_peers import OURS, THEIRS, session

SCALE = float(os.environ.get("BENCH_SCALE", "1"))
ROUNDS = 5 if SCALE >= 1 else 2
SIZES = {"100 B": (100, int(2_000_000 * SCALE)), "1 KB": (1000, int(500_000 * SCALE))}
PARTITIONS = 4
MANY_PARTITIONS, ROWS_EACH = 400, 1000
TUNED = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.check.crcs": "false",
}
CONFIG = {"log.segment.delete.delay.ms": "1000"}
Action = Callable[[], object]


def race(what: str, ours: Action, theirs: Action, rows: int, bar: float) -> Row:
    """Both in turn, after one run of each to warm up."""
    ours(), theirs()
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS):
        # Who goes first changes from round to round.
        for which in (0, 1) if number % 2 else (1, 0):
            start = time.perf_counter()
            (ours, theirs)[which]()
            times[which].append(time.perf_counter() - start)
    ratio = statistics.median(theirs / mine for mine, theirs in zip(*times, strict=True))
    mine, others = (rows / statistics.median(taken) / 1e6 for taken in times)
    return Row(what, mine, others, ratio, bar)


# --- what is measured ----------------------------------------------------------------------------


class World:
    """The session, the broker and its topics."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path) -> None:
        self.spark = spark
        self.servers = broker.bootstrap_servers
        self.folder = folder
        self._broker = broker
        self._filled: set[str] = set()
        self._streams = 0
        self._written = 0

    def topic(self, name: str, partitions: int, size: int, count: int) -> str:
        """A topic with `count` records in all."""
        if name not in self._filled:
            self._filled.add(name)
            self._broker.create_topic(name, partitions=partitions)
            with KafkaProducer(bootstrap_servers=self.servers, batch_size=65536) as producer:
                value = b"x" * size
                for number in range(count):
                    producer.send(name, value, partition=number % partitions)
        return name

    @contextmanager
    def new_topic(self) -> Iterator[str]:
        """An empty topic, deleted afterwards: what was written would fill the disk."""
        self._written += 1
        name = f"written-{self._written}"
        self._broker.create_topic(name, partitions=PARTITIONS)
        yield name
        self._broker.delete_topic(name)

    def sized(self, size: str) -> tuple[str, int]:
        """The topic of values of a size, and how many it has."""
        length, count = SIZES[size]
        return self.topic(f"of-{length}", PARTITIONS, length, count), count

    def frame(self, source: str, topic: str, options: dict[str, str]) -> DataFrame:
        reader = self.spark.read.format(source).option("kafka.bootstrap.servers", self.servers)
        return reader.option("subscribe", topic).options(**options).load()

    def stream(self, source: str, topic: str) -> None:
        """Read a topic by an availableNow stream."""
        self._streams += 1
        stream = self.spark.readStream.format(source)
        query = (
            stream.option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(self.folder / f"stream-{self._streams}"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def count(frame: DataFrame) -> None:
    frame.count()


def sum_of_lengths(frame: DataFrame) -> None:
    frame.selectExpr("sum(length(value))").collect()


def noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


WAYS: dict[str, Callable[[DataFrame], None]] = {
    "count": count,
    "sum of lengths": sum_of_lengths,
    "noop": noop,
}


def read(
    world: World, source: str, topic: str, way: Callable[[DataFrame], None], **options: str
) -> None:
    way(world.frame(source, topic, options))


def reads(
    world: World, options: dict[str, str], bars: dict[str, float], name: str
) -> Iterator[Row]:
    for size, bar in bars.items():
        topic, rows = world.sized(size)
        for way, act in WAYS.items():
            yield race(
                f"read {size}, {way}{name}",
                partial(read, world, OURS, topic, act),
                partial(read, world, THEIRS, topic, act, **options),
                rows,
                bar,
            )


def reads_default(world: World) -> Iterator[Row]:
    return reads(world, {}, {"100 B": 3, "1 KB": 2}, "")


def reads_tuned(world: World) -> Iterator[Row]:
    return reads(world, TUNED, {"100 B": 1.6, "1 KB": 1.8}, ", tuned")


def streams(world: World) -> Iterator[Row]:
    for size, bar in {"100 B": 1.5, "1 KB": 1.2}.items():
        topic, rows = world.sized(size)
        ours, theirs = (partial(world.stream, source, topic) for source in (OURS, THEIRS))
        yield race(f"stream {size}, availableNow", ours, theirs, rows, bar)


def many_partitions(world: World) -> Iterator[Row]:
    partitions = int(MANY_PARTITIONS * min(SCALE, 1))
    rows = partitions * ROWS_EACH
    topic = world.topic("many", partitions, 100, rows)
    ours, theirs = (partial(read, world, source, topic, count) for source in (OURS, THEIRS))
    yield race(f"{partitions} partitions, {ROWS_EACH} rows each", ours, theirs, rows, 5)


# --- writing -------------------------------------------------------------------------------------

LOOP_SHARE = 50  # kafka-python writes so many times fewer rows, because it is so much slower


def rows_of_size(world: World, size: str, share: int = 1) -> tuple[DataFrame, int]:
    """Rows that lie in Spark's memory before the clock runs."""
    length, rows = SIZES[size]
    rows //= share
    value = f"cast(rpad(cast(id as string), {length}, 'x') as binary) value"
    frame = world.spark.range(0, rows, 1, 2).selectExpr(value).persist()
    frame.count()
    return frame, rows


def write(world: World, sink: str, frame: DataFrame) -> None:
    with world.new_topic() as topic:
        writer = frame.write.format(sink).mode("append").option("topic", topic)
        writer.option("kafka.bootstrap.servers", world.servers).save()


def writes(world: World) -> Iterator[Row]:
    for size in SIZES:
        frame, rows = rows_of_size(world, size)
        ours, theirs = (partial(write, world, sink, frame) for sink in (OURS, THEIRS))
        yield race(f"write {size}", ours, theirs, rows, 1.5)
        frame.unpersist()


def loop(world: World) -> Iterator[Row]:
    """Against what people write by hand: a kafka-python producer in `foreachPartition`."""
    all_rows, rows = rows_of_size(world, "100 B")
    some_rows, _ = rows_of_size(world, "100 B", LOOP_SHARE)
    servers = world.servers

    def by_hand() -> None:
        with world.new_topic() as topic:

            def send(given: Iterable[Any]) -> None:
                from kafka import KafkaProducer as ForeignProducer

                producer = ForeignProducer(bootstrap_servers=servers)
                futures = [producer.send(topic, bytes(row.value)) for row in given]
                producer.flush()
                for future in futures:
                    future.get(0)
                producer.close()

            some_rows.rdd.foreachPartition(send)

    one = race("write 100 B, a loop", partial(write, world, OURS, all_rows), by_hand, rows, 20)
    # The loop wrote fewer rows in its time.
    yield one._replace(theirs=one.theirs / LOOP_SHARE, ratio=one.ratio * LOOP_SHARE)


# --- the ceiling ---------------------------------------------------------------------------------


class ReadyReader(DataSourceReader):
    """Yields one batch of the source's schema as often as necessary."""

    BATCH_ROWS = 50_000

    def __init__(self, rows: int, size: int) -> None:
        self._rows, self._size = rows, size

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, _: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = self.BATCH_ROWS
        batch = pa.RecordBatch.from_pydict(
            {
                "key": pa.nulls(rows, pa.binary()),
                "value": pa.array([b"x" * self._size] * rows),
                "topic": pa.array(["ready"] * rows),
                "partition": pa.array([0] * rows, pa.int32()),
                "offset": pa.array(range(rows), pa.int64()),
                "timestamp": pa.array([0] * rows, pa.timestamp("us", tz="UTC")),
                "timestampType": pa.array([0] * rows, pa.int32()),
            }
        )
        left = self._rows // PARTITIONS
        while left > 0:
            yield batch if left >= rows else batch.slice(0, left)
            left -= rows


class ReadySource(DataSource):
    """No Kafka at all: what Spark takes from a Python source at best."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        return (
            "key binary, value binary, topic string, partition int, offset bigint, "
            "timestamp timestamp, timestampType int"
        )

    def reader(self, schema: Any) -> ReadyReader:
        return ReadyReader(int(self.options["rows"]), int(self.options["size"]))


def ceiling(world: World) -> Iterator[Row]:
    world.spark.dataSource.register(ReadySource)
    for size, (length, rows) in SIZES.items():
        topic, _ = world.sized(size)
        for way, act in WAYS.items():
            ready = world.spark.read.format("ready").options(rows=str(rows), size=str(length))
            yield race(
                f"read {size}, {way}, of the ceiling",
                partial(read, world, OURS, topic, act),
                lambda ready=ready, act=act: act(ready.load()),  # type: ignore[misc]
                rows,
                0.7,
            )


PARTS: dict[str, Callable[[World], Iterator[Row]]] = {
    "reads": reads_default,
    "tuned": reads_tuned,
    "streams": streams,
    "partitions": many_partitions,
    "writes": writes,
    "loop": loop,
    "ceiling": ceiling,
}


def main(arguments: list[str]) -> bool:
    """Measure the parts, print them as a table; whether every bar was reached."""
    parsed = parts_parser(__doc__, PARTS).parse_args(arguments)
    try:
        spark_kafka_jars()
    except ApacheKafkaUnavailable as reason:
        sys.exit(f"no comparison without Spark's own connector: {reason}")
    print_heading("Spark connector against Spark's own (million rows a second)", "peer")
    with tempfile.TemporaryDirectory() as folder, Broker(config=CONFIG) as broker:
        spark = session(Path(folder), spark__driver__memory="3g")
        world = World(spark, broker, Path(folder))
        passed = print_rows(row for part in parsed.part or PARTS for row in PARTS[part](world))
        spark.stop()
    return passed


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
