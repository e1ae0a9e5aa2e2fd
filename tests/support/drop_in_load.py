"""Programs as people write them for other clients: `python -m tests.support.drop_in_load NAME ...`.

Arguments: the program, the package that it imports, the broker's address, the topic, how many
records. Prints records per second, and CPU per record in microseconds.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

DEADLINE_S = 120


def habit_produce(package: Any, servers: str, topic: str, count: int) -> int:
    """Send in a loop, with keys and a JSON serializer."""
    producer = package.KafkaProducer(
        bootstrap_servers=servers,
        key_serializer=str.encode,
        value_serializer=lambda value: json.dumps(value).encode("utf-8"),
    )
    for number in range(count):
        order = {"order": number, "table": number % 50, "item": "espresso", "price": 2.4}
        producer.send(topic, key=f"table-{number % 50}", value=order)
    producer.flush()
    producer.close()
    return count


def habit_consume(package: Any, servers: str, topic: str, count: int) -> int:
    """Iterate, with a JSON deserializer."""
    consumer = package.KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        value_deserializer=json.loads,
        consumer_timeout_ms=10_000,
    )
    read = 0
    for record in consumer:
        read += record.value["price"] > 0
        if read == count:
            break
    consumer.close()
    return read


def face_produce(package: Any, servers: str, topic: str, count: int) -> int:
    """confluent-kafka's loop: produce with a delivery report, poll now and then."""
    delivered = 0

    def report(error: Any, _message: Any) -> None:
        nonlocal delivered
        delivered += error is None

    producer = package.Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 5,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    value = b"x" * 100
    for number in range(count):
        producer.produce(topic, value, on_delivery=report)
        if number % 500 == 0:
            producer.poll(0)
    producer.flush(DEADLINE_S)
    return delivered


def face_consume(package: Any, servers: str, topic: str, count: int) -> int:
    """`consume(500)` in a loop, tuned so that librdkafka does not stall."""
    consumer = package.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 5,
        }
    )
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([package.TopicPartition(topic, one, -2) for one in partitions])
    read = size = 0
    deadline = time.monotonic() + DEADLINE_S
    while read < count and time.monotonic() < deadline:
        for message in consumer.consume(500, timeout=1):
            size += len(message.value())
            read += 1
    consumer.close()
    assert size >= read
    return read


PROGRAMS: dict[str, Callable[[Any, str, str, int], int]] = {
    "habit-produce": habit_produce,
    "habit-consume": habit_consume,
    "face-produce": face_produce,
    "face-consume": face_consume,
}


def main(program: str, package: str, servers: str, topic: str, count: int) -> None:
    """Run a program once and print what it took."""
    module = importlib.import_module(package)
    cpu, wall = time.process_time(), time.perf_counter()
    done = PROGRAMS[program](module, servers, topic, count)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert done == count, f"{done} of {count} records"
    print(json.dumps({"rate": count / wall, "cpu_us": cpu / count * 1e6}))


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]))  # type: ignore[call-arg,arg-type]
