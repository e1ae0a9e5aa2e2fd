"""Our consumer on Apache Kafka 4.3, reading what confluent-kafka wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

import confluent_kafka
import pytest

from pyclient import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from tests.interop.apache_kafka import ApacheKafka

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS = 4
RECORDS = 400


def write_with_confluent(servers: str, topic: str, codec: str = "none") -> dict[int, list[bytes]]:
    """Fill a topic; the values of each partition come back, in their order."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "compression.type": codec, "enable.idempotence": True}
    )
    written: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
    for number in range(RECORDS):
        value = f"value-{number}".encode() * 20
        partition = number % PARTITIONS
        producer.produce(topic, value, key=b"k", partition=partition, headers=[("h", b"1")])
        written[partition].append(value)
    assert producer.flush(30) == 0
    return written


@pytest.mark.parametrize("codec", CODECS)
def test_what_confluent_kafka_wrote_is_what_we_read(apache: ApacheKafka, codec: str) -> None:
    topic = f"theirs-{codec}"
    written = write_with_confluent(apache.bootstrap_servers, topic, codec)
    read: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
    with KafkaConsumer(
        topic, bootstrap_servers=apache.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        while sum(map(len, read.values())) < RECORDS:
            polled = consumer.poll(timeout_ms=20_000)
            assert polled, "nothing came any more"
            for partition, records in polled.items():
                read[partition.partition] += [record.value for record in records]
                assert all(record.key == b"k" for record in records)
                assert all(list(record.headers) == [("h", b"1")] for record in records)
    assert read == written


class Assigned(ConsumerRebalanceListener):
    """Tells when a member has its partitions."""

    def __init__(self, on_change: Callable[[Collection[TopicPartition]], None]) -> None:
        self._on_change = on_change

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._on_change(assigned)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_a_group_of_two_shares_the_partitions_and_reads_everything_once(
    apache: ApacheKafka, assignor: str
) -> None:
    topic = f"group-{assignor}"
    written = write_with_confluent(apache.bootstrap_servers, topic)
    shares = [0, 0]
    settled, done = threading.Event(), threading.Event()
    read: list[tuple[int, int, bytes]] = []
    errors: list[Exception] = []

    def run(index: int) -> None:
        try:
            with KafkaConsumer(
                bootstrap_servers=apache.bootstrap_servers,
                group_id=topic,
                auto_offset_reset="earliest",
                partition_assignment_strategy=[assignor],
                enable_auto_commit=False,
            ) as consumer:

                def on_change(assigned: Collection[TopicPartition]) -> None:
                    shares[index] = len(assigned)
                    if shares == [2, 2]:
                        settled.set()
                    # Until both have their share, whoever came first must not read it all.
                    consumer.pause(*assigned)

                consumer.subscribe([topic], listener=Assigned(on_change))
                while not done.is_set():
                    if settled.is_set():
                        consumer.resume(*consumer.assignment())
                    for partition, records in consumer.poll(timeout_ms=200).items():
                        read.extend((partition.partition, r.offset, r.value) for r in records)
                        consumer.commit()
                    if len(read) >= RECORDS:
                        done.set()
        except Exception as error:  # noqa: BLE001  the test fails with it below
            errors.append(error)
            done.set()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    assert done.wait(60), f"{len(read)} of {RECORDS} read, shares {shares}"
    for thread in threads:
        thread.join(30)
    assert not errors
    assert settled.is_set()
    expected = [
        (partition, offset, value)
        for partition, values in written.items()
        for offset, value in enumerate(values)
    ]
    assert sorted(read) == expected
    with KafkaConsumer(bootstrap_servers=apache.bootstrap_servers, group_id=topic) as consumer:
        committed = [consumer.committed(TopicPartition(topic, n)) for n in range(PARTITIONS)]
    assert committed == [len(written[number]) for number in range(PARTITIONS)]


def test_offsets_by_time_beginning_and_end(apache: ApacheKafka) -> None:
    topic = "times"
    producer = confluent_kafka.Producer({"bootstrap.servers": apache.bootstrap_servers})
    for number in range(10):
        producer.produce(topic, b"v", partition=0, timestamp=1_700_000_000_000 + number * 1000)
    producer.flush(30)
    partition = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=apache.bootstrap_servers) as consumer:
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 10}
        found = consumer.offsets_for_times({partition: 1_700_000_000_000 + 4500})[partition]
        assert found is not None
        assert found.offset == 5
        consumer.assign([partition])
        consumer.seek(partition, 7)
        records = consumer.poll(timeout_ms=20_000)[partition]
        assert [record.offset for record in records] == [7, 8, 9]
