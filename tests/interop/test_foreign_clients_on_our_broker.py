"""Clients that share no code with us, unmodified, against our broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker_stub import Broker
from pyclient.types import TopicPartition
from tests.interop.foreign_clients import FOREIGN_CLIENTS, ForeignClient, Record

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
START_MS = 1_700_000_000_000
PARTITIONS = 3

every_client = pytest.mark.parametrize("client", FOREIGN_CLIENTS, ids=lambda one: one.name)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"num.partitions": PARTITIONS}) as running:
        yield running


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]
    broker.create_topic(name, partitions=PARTITIONS)
    return name


def records(count: int = 60) -> list[Record]:
    """Keys and headers, with and without; a null value; a large one; three partitions."""
    made = []
    for index in range(count):
        value: bytes | None = b"value-%d" % index * (index % 50 + 1)
        if index % 13 == 5:
            value = None
        if index == 7:
            value = bytes(range(256)) * 800
        made.append(
            Record(
                partition=index % PARTITIONS,
                key=b"key-%d" % index if index % 3 else b"",
                value=value,
                headers=(("trace", b"%d" % index), ("empty", b"")) if index % 2 else (),
                timestamp_ms=START_MS + index * 1000,
            )
        )
    return made


def by_partition(sent: list[Record]) -> dict[int, list[Record]]:
    return {index: [one for one in sent if one.partition == index] for index in range(PARTITIONS)}


@pytest.mark.parametrize("codec", CODECS)
@every_client
def test_what_one_client_produces_every_client_reads(broker, topic, client, codec):
    if codec in client.lacks:
        pytest.skip(f"{client.name} has no library for {codec}: pip install python-snappy")
    sent = records()
    offsets = client.produce(broker.bootstrap_servers, topic, sent, codec=codec)
    assert offsets == [index // PARTITIONS for index in range(len(sent))]
    for reader in FOREIGN_CLIENTS:
        if codec in reader.lacks:
            continue
        found = reader.consume(broker.bootstrap_servers, topic, PARTITIONS, len(sent))
        assert found == by_partition(sent), reader.name


@pytest.mark.parametrize("acks", [0, 1, "all"])
@every_client
def test_records_arrive_with_any_acks(broker, topic, client: ForeignClient, acks):
    sent = records(9)
    offsets = client.produce(broker.bootstrap_servers, topic, sent, acks=acks)
    if acks != 0:  # else nobody told them
        assert offsets == [index // PARTITIONS for index in range(9)]
    assert client.consume(broker.bootstrap_servers, topic, PARTITIONS, 9) == by_partition(sent)


@every_client
def test_idempotent_producers_are_given_ids_and_write_once(broker, topic, client):
    sent = records(300)
    client.produce(broker.bootstrap_servers, topic, sent, idempotent=True)
    found = client.consume(broker.bootstrap_servers, topic, PARTITIONS, len(sent))
    assert found == by_partition(sent)
    ends = broker.call(
        lambda node: [
            node.replicas.partition(topic, index).log_end_offset for index in range(PARTITIONS)
        ]
    )
    assert ends == [100, 100, 100]


@every_client
def test_offsets_are_found_by_time(broker, topic, client):
    client.produce(broker.bootstrap_servers, topic, records(9))
    partition = TopicPartition(topic, 1)  # records 1, 4 and 7
    bootstrap = broker.bootstrap_servers
    assert client.offset_at(bootstrap, partition, START_MS) == 0
    assert client.offset_at(bootstrap, partition, START_MS + 1_001) == 1
    assert client.offset_at(bootstrap, partition, START_MS + 7_000) == 2
    assert client.offset_at(bootstrap, partition, START_MS + 7_001) == -1


@every_client
def test_a_topic_is_created_by_producing_to_it(broker, client):
    topic = f"auto-{client.name}"
    client.produce(broker.bootstrap_servers, topic, records(3))
    found = client.consume(broker.bootstrap_servers, topic, PARTITIONS, 3)
    assert found == by_partition(records(3))


@every_client
def test_records_outlive_a_kill_of_the_broker(client):
    sent = records(30)
    with Broker(config={"num.partitions": PARTITIONS}) as broker:
        client.produce(broker.bootstrap_servers, "kept", sent, idempotent=True)
        broker.kill()
        broker.start()
        found = client.consume(broker.bootstrap_servers, "kept", PARTITIONS, len(sent))
    assert found == by_partition(sent)
