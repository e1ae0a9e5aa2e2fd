"""A consuming client in a process of its own: `python -m tests.support.consumer_load CLIENT`.

Reads one job a line from its input, as JSON, and answers each with a line: what it took. Every job
has a fresh consumer, assigned to all partitions at their start; the clock runs from its first
records to its last. confluent-kafka's queue is long and its back-off short: with its defaults it
stalls at random when records are small.
"""

import asyncio
import json
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

TIMEOUT_SECONDS = 120
CONSUME = 500
STEP = 10_000  # records between two looks at the clock, where they come one by one
STARTS = 5  # of which a job measures the median, where it is about the first record
TUNED = {"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 5}


class Job(NamedTuple):
    """What to read: so many records of a topic, and the options that the comparison sets."""

    bootstrap: str
    topic: str
    partitions: int
    count: int  # type: ignore[assignment]  # tuples have a method of this name
    options: dict[str, Any] = {}


class Figures(dict[str, float]):
    """What a job took: records a second, and microseconds of this process's CPU a record.

    Or milliseconds until the first record.
    """


def _timed(job: Job, counts: Iterator[int]) -> Figures:
    """Take counts of records until there are enough; the first ones only start the clock."""
    enough = job.count - STEP  # so that the last step is a whole one
    first = done = next(counts)
    cpu, wall = time.process_time(), time.perf_counter()
    for count in counts:
        done += count
        if done >= enough:
            break
    seconds = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    return Figures(rate=(done - first) / seconds, cpu_us=1e6 * cpu / (done - first))


def _polls(consumer: Any) -> Iterator[int]:
    while True:
        yield sum(map(len, consumer.poll(timeout_ms=TIMEOUT_SECONDS * 1000).values()))


def _tables(consumer: Any) -> Iterator[int]:
    while True:
        yield consumer.poll_arrow(timeout_ms=TIMEOUT_SECONDS * 1000).num_rows


def _records(consumer: Any) -> Iterator[int]:
    """By iteration, counted outside of the loop that a program would write."""
    yield 0 if next(consumer) is None else 1
    while True:
        left = STEP
        for _record in consumer:
            left -= 1
            if not left:
                break
        yield STEP


def _ours(read: Callable[[Any], Iterator[int]]) -> Callable[[Job], Figures]:
    def run(job: Job) -> Figures:
        from pyclient import KafkaConsumer, TopicPartition

        options = {"auto_offset_reset": "earliest", **job.options}
        with KafkaConsumer(bootstrap_servers=job.bootstrap, **options) as consumer:
            consumer.assign([TopicPartition(job.topic, n) for n in range(job.partitions)])
            return _timed(job, read(consumer))

    return run


def _kafka_python(job: Job) -> Figures:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=job.bootstrap, auto_offset_reset="earliest", **job.options
    )
    try:
        consumer.assign([TopicPartition(job.topic, n) for n in range(job.partitions)])
        return _timed(job, _polls(consumer))
    finally:
        consumer.close()


def _confluent(job: Job) -> Figures:
    consumer = _confluent_consumer(job)

    def counts() -> Iterator[int]:
        while True:
            yield len(consumer.consume(CONSUME, TIMEOUT_SECONDS))

    try:
        return _timed(job, counts())
    finally:
        consumer.close()


def _confluent_poll(job: Job) -> Figures:
    consumer = _confluent_consumer(job)

    def counts() -> Iterator[int]:
        step = 1
        while True:
            for _ in range(step):
                assert consumer.poll(TIMEOUT_SECONDS) is not None
            yield step
            step = STEP

    try:
        return _timed(job, counts())
    finally:
        consumer.close()


def _confluent_consumer(job: Job) -> Any:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    config = {"bootstrap.servers": job.bootstrap, "group.id": "load", "enable.auto.commit": False}
    consumer = Consumer({**config, **TUNED, **job.options})
    partitions = range(job.partitions)
    consumer.assign([TopicPartition(job.topic, n, OFFSET_BEGINNING) for n in partitions])
    return consumer


def _aiokafka(job: Job) -> Figures:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> Figures:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=job.bootstrap, auto_offset_reset="earliest", **job.options
        )
        await consumer.start()
        try:
            consumer.assign([TopicPartition(job.topic, n) for n in range(job.partitions)])

            async def count() -> int:
                records = await consumer.getmany(
                    timeout_ms=TIMEOUT_SECONDS * 1000, max_records=CONSUME
                )
                return sum(map(len, records.values()))

            first = done = await count()
            cpu, wall = time.process_time(), time.perf_counter()
            while done < job.count - STEP:
                done += await count()
            seconds = time.perf_counter() - wall
            cpu = time.process_time() - cpu
            return Figures(rate=(done - first) / seconds, cpu_us=1e6 * cpu / (done - first))
        finally:
            await consumer.stop()

    return asyncio.run(run())


def _first_ours(is_group: bool) -> Callable[[Job], Figures]:
    def start(job: Job) -> float:
        from pyclient import KafkaConsumer, TopicPartition

        group = f"first-{uuid.uuid4()}" if is_group else None
        options = {"auto_offset_reset": "earliest", "group_id": group, **job.options}
        with KafkaConsumer(bootstrap_servers=job.bootstrap, **options) as consumer:
            began = time.perf_counter()
            if is_group:
                consumer.subscribe([job.topic])
            else:
                consumer.assign([TopicPartition(job.topic, 0)])
            assert consumer.poll(timeout_ms=TIMEOUT_SECONDS * 1000, max_records=1)
            return time.perf_counter() - began

    return lambda job: _median_of_starts(job, start)


def _first_confluent(is_group: bool) -> Callable[[Job], Figures]:
    def start(job: Job) -> float:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        config = {"bootstrap.servers": job.bootstrap, "group.id": f"first-{uuid.uuid4()}"}
        consumer = Consumer({**config, **TUNED, "auto.offset.reset": "earliest", **job.options})
        try:
            began = time.perf_counter()
            if is_group:
                consumer.subscribe([job.topic])
            else:
                consumer.assign([TopicPartition(job.topic, 0, OFFSET_BEGINNING)])
            message = consumer.poll(TIMEOUT_SECONDS)
            assert message is not None
            assert message.error() is None
            return time.perf_counter() - began
        finally:
            consumer.close()

    return lambda job: _median_of_starts(job, start)


def _median_of_starts(job: Job, start: Callable[[Job], float]) -> Figures:
    return Figures(ms=1e3 * statistics.median(start(job) for _ in range(STARTS)))


CLIENTS: dict[str, Callable[[Job], Figures]] = {
    "first-assign": _first_ours(is_group=False),
    "first-subscribe": _first_ours(is_group=True),
    "confluent-assign": _first_confluent(is_group=False),
    "confluent-subscribe": _first_confluent(is_group=True),
    "ours": _ours(_polls),
    "iteration": _ours(_records),
    "arrow": _ours(_tables),
    "confluent": _confluent,
    "confluent-poll": _confluent_poll,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
}


def main() -> None:
    """Work off the jobs."""
    client = CLIENTS[sys.argv[1]]
    for line in sys.stdin:
        print(json.dumps(client(Job(**json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
