"""Clients that share no code with us, unmodified, against `python -m broker_stub`.

As a process it takes its short cuts for Produce and Fetch, which a broker in the test does not.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Theirs

from pyclient.types import TopicPartition
from tests.interop.foreign_clients import FOREIGN_CLIENTS, ForeignClient
from tests.interop.foreign_records import TIMEOUT_SECONDS, Record, by_partition
from tests.support.broker_load import create_topic
from tests.support.server_process import ServerProcess

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
START_MS = 1_700_000_000_000
PARTITIONS = 3

every_client = pytest.mark.parametrize("client", FOREIGN_CLIENTS, ids=lambda one: one.name)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with ServerProcess("--config", f"num.partitions={PARTITIONS}") as running:
        yield running.bootstrap_servers


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]
    create_topic(bootstrap, name, PARTITIONS)
    return name


def records(count: int = 60) -> list[Record]:
    """Keys, null and empty ones too; null values; a large one; headers; three partitions."""
    made = []
    keys = (None, b"", b"key", b"another key")
    for index in range(count):
        value: bytes | None = b"value-%d" % index * (index % 50 + 1)
        if index % 8 == 6:  # with a key: aiokafka sends no record that has neither
            value = None
        if index == 7:
            value = bytes(range(256)) * 800
        made.append(
            Record(
                partition=index % PARTITIONS,
                key=keys[index % len(keys)],
                value=value,
                headers=(("trace", b"%d" % index), ("empty", b"")) if index % 2 else (),
                timestamp_ms=START_MS + index * 1000,
            )
        )
    return made


def end_offsets(bootstrap: str, topic: str) -> list[int]:
    """How many records were written to each partition."""
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})) as consumer:
        return [
            consumer.get_watermark_offsets(Theirs(topic, index), TIMEOUT_SECONDS)[1]
            for index in range(PARTITIONS)
        ]


@pytest.mark.parametrize("codec", CODECS)
@every_client
def test_what_one_client_produces_every_client_reads(bootstrap, topic, client, codec):
    sent = records()
    offsets = client.produce(bootstrap, topic, sent, codec=codec)
    assert offsets == [index // PARTITIONS for index in range(len(sent))]
    for reader in FOREIGN_CLIENTS:
        found = reader.consume(bootstrap, topic, PARTITIONS, len(sent))
        assert found == by_partition(sent, PARTITIONS), reader.name


@pytest.mark.parametrize("acks", [0, 1, "all"])
@every_client
def test_records_arrive_with_any_acks(bootstrap, topic, client: ForeignClient, acks):
    sent = records(9)
    offsets = client.produce(bootstrap, topic, sent, acks=acks)
    if acks != 0:  # else nobody told them
        assert offsets == [index // PARTITIONS for index in range(9)]
    found = client.consume(bootstrap, topic, PARTITIONS, len(sent))
    assert found == by_partition(sent, PARTITIONS)


@every_client
def test_idempotent_producers_are_given_ids_and_write_once(bootstrap, topic, client):
    sent = records(300)
    client.produce(bootstrap, topic, sent, idempotent=True)
    found = client.consume(bootstrap, topic, PARTITIONS, len(sent))
    assert found == by_partition(sent, PARTITIONS)
    assert end_offsets(bootstrap, topic) == [100, 100, 100]


@every_client
def test_offsets_are_found_by_time(bootstrap, topic, client):
    client.produce(bootstrap, topic, records(9))
    partition = TopicPartition(topic, 1)  # records 1, 4 and 7
    assert client.offset_at(bootstrap, partition, START_MS) == 0
    assert client.offset_at(bootstrap, partition, START_MS + 1_001) == 1
    assert client.offset_at(bootstrap, partition, START_MS + 7_000) == 2
    assert client.offset_at(bootstrap, partition, START_MS + 7_001) == -1


@every_client
def test_a_reader_seeks_to_a_time_and_reads_on_from_there(bootstrap, topic, client):
    sent = records(300)
    for start in range(0, len(sent), 30):  # in batches of their own
        client.produce(bootstrap, topic, sent[start : start + 30])
    since = START_MS + 200_001
    wanted = [one for one in sent if one.partition == 1 and one.timestamp_ms >= since]
    found = client.read_since(bootstrap, TopicPartition(topic, 1), since, len(wanted))
    assert found == wanted


@every_client
def test_a_topic_is_created_by_producing_to_it(bootstrap, client):
    topic = f"auto-{client.name}"
    client.produce(bootstrap, topic, records(3))
    found = client.consume(bootstrap, topic, PARTITIONS, 3)
    assert found == by_partition(records(3), PARTITIONS)


@every_client
def test_records_outlive_a_kill_of_the_broker(client, tmp_path):
    sent = records(30)
    config = ("--config", f"num.partitions={PARTITIONS}")
    with ServerProcess("--data-dir", tmp_path, *config) as server:
        client.produce(server.bootstrap_servers, "kept", sent, idempotent=True)
        server.kill()
        server.start()
        found = client.consume(server.bootstrap_servers, "kept", PARTITIONS, len(sent))
    assert found == by_partition(sent, PARTITIONS)
