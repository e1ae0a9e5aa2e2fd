"""From `send` to the `poll` that returns it: `python -m tests.support.end_to_end_load CLIENT`.

Producer and consumer share the process, so that one clock measures both ends. Reads one job a line
from its input, as JSON, and answers each with a line: milliseconds, and CPU a record.
"""

import json
import statistics
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

TIMEOUT_SECONDS = 60
WARM_UP_SECONDS = 0.5


class Job(NamedTuple):
    """How many records to send, and how many a second."""

    bootstrap: str
    topic: str
    count: int  # type: ignore[assignment]  # tuples have a method of this name
    rate: int
    size: int = 100


def _measure(
    job: Job, send: Callable[[bytes], object], read: Callable[[], Iterable[bytes]]
) -> dict[str, float]:
    """Send at a steady rate on this thread, and read on another one."""
    now = time.perf_counter
    warm_up = int(job.rate * WARM_UP_SECONDS)
    total = job.count + warm_up
    latencies: list[float] = []

    def receive() -> None:
        until = now() + TIMEOUT_SECONDS
        while len(latencies) < total and now() < until:
            values = read()
            arrived = now()
            latencies.extend(arrived - struct.unpack_from("d", value)[0] for value in values)

    reader = threading.Thread(target=receive)
    reader.start()
    padding = bytes(job.size - 8)
    cpu = time.process_time()
    due = now()
    for _ in range(total):
        wait = due - now()
        if wait > 0:
            time.sleep(wait)
        send(struct.pack("d", now()) + padding)
        due += 1 / job.rate
    reader.join()
    assert len(latencies) == total, f"{len(latencies)} of {total} records came"
    percentiles = statistics.quantiles(latencies[warm_up:], n=100)
    return {
        "p50_ms": percentiles[49] * 1e3,
        "p99_ms": percentiles[98] * 1e3,
        "cpu_us": (time.process_time() - cpu) / total * 1e6,
    }


def ours(job: Job) -> dict[str, float]:
    from pyclient import KafkaConsumer, KafkaProducer, TopicPartition

    with (
        KafkaProducer(bootstrap_servers=job.bootstrap, linger_ms=0) as producer,
        KafkaConsumer(bootstrap_servers=job.bootstrap) as consumer,
    ):
        partition = TopicPartition(job.topic, 0)
        consumer.assign([partition])
        consumer.seek_to_end(partition)
        consumer.position(partition)

        def read() -> Iterable[bytes]:
            found = consumer.poll(timeout_ms=1000)
            return [record.value for records in found.values() for record in records]

        return _measure(job, lambda value: producer.send(job.topic, value, partition=0), read)


def confluent(job: Job) -> dict[str, float]:
    from confluent_kafka import Consumer, Producer, TopicPartition

    config = {"bootstrap.servers": job.bootstrap}
    producer = Producer({**config, "linger.ms": 0, "enable.idempotence": True})
    consumer = Consumer({**config, "group.id": "load", "enable.auto.commit": False})
    _, end = consumer.get_watermark_offsets(TopicPartition(job.topic, 0), TIMEOUT_SECONDS)
    consumer.assign([TopicPartition(job.topic, 0, end)])

    def read() -> Iterable[bytes]:
        first = consumer.poll(1.0)  # `consume` would wait for more
        if first is None:
            return []
        messages: list[Any] = [first, *consumer.consume(500, 0)]
        return [message.value() for message in messages]

    def send(value: bytes) -> None:
        producer.produce(job.topic, value, partition=0)
        producer.poll(0)

    try:
        return _measure(job, send, read)
    finally:
        producer.flush(TIMEOUT_SECONDS)
        consumer.close()


CLIENTS: dict[str, Callable[[Job], dict[str, float]]] = {"ours": ours, "confluent": confluent}


def main() -> None:
    """Work off the jobs."""
    client = CLIENTS[sys.argv[1]]
    for line in sys.stdin:
        print(json.dumps(client(Job(**json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
