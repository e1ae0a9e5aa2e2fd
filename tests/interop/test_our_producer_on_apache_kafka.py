"""Our producer on Apache Kafka 4.3, read back by confluent-kafka: byte for byte."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest

from pyclient import KafkaProducer
from tests.interop.apache_kafka import ApacheKafka

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
RECORDS = 500


def read_with_confluent(servers: str, topic: str, count: int) -> list[Any]:
    """The topic's records from its beginning, as confluent-kafka sees them."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"check-{topic}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    records: list[Any] = []
    try:
        while len(records) < count:
            batch = consumer.consume(count - len(records), timeout=20)
            assert batch, f"{len(records)} of {count} records, then nothing"
            for record in batch:
                assert record.error() is None, record.error()
                records.append(record)
    finally:
        consumer.close()
    return records


@pytest.mark.parametrize("codec", CODECS)
def test_what_we_send_is_what_confluent_kafka_reads(apache: ApacheKafka, codec: str | None) -> None:
    topic = f"ours-{codec}"
    sent = {}
    with KafkaProducer(
        bootstrap_servers=apache.bootstrap_servers, compression_type=codec, linger_ms=5
    ) as producer:
        for number in range(RECORDS):
            key = f"key-{number}".encode() if number % 3 or number % 7 == 0 else None
            value = f"value-{number}".encode() * (number % 50) if number % 7 else None
            headers = [("h", str(number).encode()), ("empty", b"")] if number % 2 else []
            future = producer.send(
                topic, value, key=key, headers=headers, timestamp_ms=1000 + number
            )
            sent[number] = (future, key, value, headers)
        producer.flush(timeout=30)
    expected = {
        (future.get(0).partition, future.get(0).offset): (1000 + number, key, value, headers)
        for number, (future, key, value, headers) in sent.items()
    }
    assert len(expected) == RECORDS
    found = {
        (one.partition(), one.offset()): (
            one.timestamp()[1],
            one.key(),
            one.value(),
            one.headers() or [],
        )
        for one in read_with_confluent(apache.bootstrap_servers, topic, RECORDS)
    }
    assert found == expected


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement_delivers(apache: ApacheKafka, acks: int | str) -> None:
    topic = f"acks-{acks}"
    with KafkaProducer(bootstrap_servers=apache.bootstrap_servers) as producer:
        # A topic that is still being created would silently drop what comes with acks=0.
        producer.send(topic, b"-1", partition=0).get(20)
    with KafkaProducer(bootstrap_servers=apache.bootstrap_servers, acks=acks) as producer:
        for number in range(100):
            producer.send(topic, str(number).encode(), partition=0)
    records = read_with_confluent(apache.bootstrap_servers, topic, 101)
    assert [int(one.value()) for one in records] == list(range(-1, 100))


def test_keys_land_where_javas_partitioner_puts_them(apache: ApacheKafka) -> None:
    topic = "keys"
    with KafkaProducer(bootstrap_servers=apache.bootstrap_servers) as ours:
        placed = {
            key: ours.send(topic, b"", key=key).get(20).partition
            for key in (f"key-{n}".encode() for n in range(200))
        }
    theirs = confluent_kafka.Producer(
        {"bootstrap.servers": apache.bootstrap_servers, "partitioner": "murmur2_random"}
    )
    by_them: dict[bytes, int] = {}
    for key in placed:
        theirs.produce(
            topic, b"", key, on_delivery=lambda _e, m: by_them.update({m.key(): m.partition()})
        )
    theirs.flush(20)
    assert by_them == placed
