"""More partitions than a process may have files open: created, produced to, consumed."""

import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tests.support.broker_load import TIMEOUT_SECONDS, create_topic
from tests.support.server_process import ServerProcess

TOPIC = "many"


def many_partitions(count: int, *, descriptors: int) -> float:
    """Write a record to each of `count` partitions and read it again; returns the seconds."""
    limit = f"--nofile={descriptors}:{descriptors}"
    with ServerProcess(wrapper=["prlimit", limit]) as server:
        started = time.perf_counter()
        create_topic(server.bootstrap_servers, TOPIC, count)
        _produce(server.bootstrap_servers, count)
        assert _consume(server.bootstrap_servers, count) == {
            index: str(index).encode() for index in range(count)
        }
        return time.perf_counter() - started


def _produce(bootstrap: str, count: int) -> None:
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for index in range(count):
        producer.produce(
            TOPIC,
            str(index),
            partition=index,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    assert not failures, failures[0]


def _consume(bootstrap: str, count: int) -> dict[int, bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "many", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(TOPIC, index, OFFSET_BEGINNING) for index in range(count)])
    found: dict[int, bytes] = {}
    try:
        while len(found) < count:
            messages = consumer.consume(min(1000, count - len(found)), TIMEOUT_SECONDS)
            assert messages, f"{len(found)} of {count} records came"
            for message in messages:
                assert message.error() is None, message.error()
                partition, value = message.partition(), message.value()
                assert partition is not None
                assert value is not None
                found[partition] = value
    finally:
        consumer.close()
    return found


if __name__ == "__main__":
    print(many_partitions(int(sys.argv[1]), descriptors=int(sys.argv[2])))
