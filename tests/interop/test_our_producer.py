"""Our producer on Apache Kafka 4.3, librdkafka's mock and our broker, read by confluent-kafka.

One body for all, so that each broker is held against the same bytes.
"""

import subprocess
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from broker_stub import Broker
from pyclient import KafkaProducer
from tests.interop.apache_kafka import jars
from tests.interop.mock_broker import mock_broker

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
RECORDS = 500


@pytest.fixture(scope="module", params=["Apache Kafka", "the mock", "ours"])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a broker that creates topics of four partitions when they are asked for."""
    if request.param == "Apache Kafka":
        yield request.getfixturevalue("apache").bootstrap_servers
    elif request.param == "the mock":
        with mock_broker() as mock:
            yield mock.bootstrap_servers
    else:
        with Broker(config={"num.partitions": 4}) as broker:
            yield broker.bootstrap_servers


def read_with_confluent(servers: str, topic: str, count: int) -> list[Any]:
    """The topic's records from its beginning, as confluent-kafka sees them."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "check",  # it wants one, and does not use it
            "enable.auto.commit": False,
        }
    )
    partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
    consumer.assign(
        [
            confluent_kafka.TopicPartition(topic, partition, confluent_kafka.OFFSET_BEGINNING)
            for partition in partitions
        ]
    )
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


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("codec", CODECS)
def test_what_we_send_is_what_confluent_kafka_reads(
    servers: str, codec: str | None, idempotent: bool
) -> None:
    topic = f"ours-{codec}-{idempotent}"
    sent = {}
    with KafkaProducer(
        bootstrap_servers=servers, compression_type=codec, enable_idempotence=idempotent
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
        for one in read_with_confluent(servers, topic, RECORDS)
    }
    assert found == expected


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement_delivers(servers: str, acks: int | str) -> None:
    topic = f"acks-{acks}"
    with KafkaProducer(bootstrap_servers=servers) as producer:
        # A topic that is still being created would silently drop what comes with acks=0.
        producer.send(topic, b"-1", partition=0).get(20)
    with KafkaProducer(bootstrap_servers=servers, acks=acks) as producer:
        for number in range(100):
            producer.send(topic, str(number).encode(), partition=0)
    records = read_with_confluent(servers, topic, 101)
    assert [int(one.value()) for one in records] == list(range(-1, 100))


def placed_by_us(servers: str, topic: str) -> dict[bytes, int]:
    """Where our producer puts two hundred keys."""
    with KafkaProducer(bootstrap_servers=servers) as producer:
        futures = {
            key: producer.send(topic, b"v", key=key)
            for key in (f"key-{number}".encode() for number in range(200))
        }
        return {key: future.get(20).partition for key, future in futures.items()}


def test_keys_land_where_librdkafkas_port_of_javas_partitioner_puts_them(servers: str) -> None:
    placed = placed_by_us(servers, "keys")
    theirs = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "partitioner": "murmur2_random"}
    )
    by_them: dict[bytes, int] = {}
    for key in placed:
        theirs.produce(
            "keys", b"v", key, on_delivery=lambda _e, m: by_them.update({m.key(): m.partition()})
        )
    theirs.flush(20)
    assert by_them == placed


# The mock is too old for Java's client of today.
@pytest.mark.parametrize("servers", ["Apache Kafka", "ours"], indirect=True)
def test_keys_land_where_javas_own_producer_puts_them(servers: str, kafka_jars: None) -> None:
    placed = placed_by_us(servers, "java-keys")
    command = ["java", "-Xmx256m", "-cp", f"{jars()}/*", "org.apache.kafka.tools.ConsoleProducer"]
    options = ["--bootstrap-server", servers, "--topic", "java-keys"]
    parsing = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=="]
    done = subprocess.run(
        [*command, *options, *parsing],
        input="".join(f"{key.decode()}=java\n" for key in placed),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    by_java = {
        record.key(): record.partition()
        for record in read_with_confluent(servers, "java-keys", 2 * len(placed))
        if record.value() == b"java"
    }
    assert by_java == placed
