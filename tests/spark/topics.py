"""Filling and reading topics around a Spark job, with our own clients."""

from collections.abc import Iterable

from pyclient import (
    ConsumerRecord,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)


def create(servers: str, topics: dict[str, int]) -> None:
    """Create topics with so many partitions each."""
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        wanted = {name: {"num_partitions": count} for name, count in topics.items()}
        admin.create_topics(wanted, wait_for_metadata=True)


def fill(servers: str, topic: str, values: Iterable[bytes], partitions: int = 1) -> None:
    """Send values round robin over the partitions, with a key and a timestamp each."""
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number, value in enumerate(values):
            producer.send(
                topic,
                value,
                key=f"k{number}".encode(),
                partition=number % partitions,
                timestamp_ms=1_700_000_000_000 + number,
                headers=[("n", str(number).encode())] if number % 2 else None,
            )


def read_all(servers: str, topic: str) -> list[ConsumerRecord]:
    """Everything a topic holds now."""
    with KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False) as consumer:
        numbers = consumer.partitions_for_topic(topic) or set()
        partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
        if not partitions:
            return []
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        records: list[ConsumerRecord] = []
        while any(consumer.position(one) < ends[one] for one in partitions):
            for batch in consumer.poll(timeout_ms=10_000).values():
                records += batch
    return records
