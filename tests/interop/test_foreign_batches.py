"""Batches of confluent-kafka, kafka-python and aiokafka read by us, and ours by them."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import aiokafka.record.default_records as aiokafka_records
import cramjam
import kafka.codec
import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AiokafkaLegacyBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaMemoryRecords
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.record import MemoryRecords as KafkaPythonMemoryRecords
from kafka.record import default_records as kafka_python_records
from kafka.record.legacy_records import LegacyRecordBatchBuilder as KafkaPythonLegacyBuilder

from pyclient.records.batch import iter_batches
from pyclient.records.compression import Codec
from tests.interop.mock_broker import TIMEOUT_SECONDS, MockBroker, mock_broker
from tests.support.batches import CODECS, Record, build_batch, facts

# Large enough for several snappy and lz4 blocks, and compressible, for the peers send what does
# not shrink uncompressed.
RECORDS: list[Record] = [
    (
        1_700_000_000_000 + 3 * index,
        None if index % 5 == 4 else b"key-%d" % index,
        None if index % 50 == 49 else b"the value of record %d " % index * 40,
        [("name", b"%d" % index), ("empty", b"")] if index % 3 == 0 else [],
    )
    for index in range(200)
]
codecs = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)


class Snappy:
    """python-snappy's interface over cramjam: kafka-python finds no other library here."""

    @staticmethod
    def compress(data: bytes) -> bytes:
        return bytes(cramjam.snappy.compress_raw(data))

    @staticmethod
    def decompress(data: bytes) -> bytes:
        return bytes(cramjam.snappy.decompress_raw(data))


@pytest.fixture(autouse=True)
def kafka_python_has_snappy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka.codec, "snappy", Snappy)


def read_by_us(data: bytes, codec: Codec) -> list[Record]:
    batches = list(iter_batches(data))
    assert all(batch.crc_is_valid() for batch in batches)
    assert {batch.codec for batch in batches} == {codec}
    return facts(record for batch in batches for record in batch.decode())


def fill(builder: Any, records: list[Record]) -> bytes:
    for offset, (timestamp, key, value, headers) in enumerate(records):
        assert builder.append(offset, timestamp, key, value, headers)
    return bytes(builder.build())


BUILDERS = {
    "kafka-python": kafka_python_records.DefaultRecordBatchBuilder,
    "aiokafka": aiokafka_records.DefaultRecordBatchBuilder,
    "aiokafka in Python": aiokafka_records._DefaultRecordBatchBuilderPy,
}
READERS = {
    "kafka-python": KafkaPythonMemoryRecords,
    "aiokafka": AiokafkaMemoryRecords,
}


@codecs
@pytest.mark.parametrize("peer", BUILDERS)
def test_we_read_what_they_build(peer: str, codec: Codec, twin: ModuleType) -> None:
    builder = BUILDERS[peer](2, codec, 1, 77, 3, 5, 1 << 20)
    data = fill(builder, RECORDS)
    (batch,) = iter_batches(data)
    assert (batch.is_transactional, batch.producer_id, batch.producer_epoch) == (True, 77, 3)
    assert (batch.base_sequence, batch.last_offset) == (5, len(RECORDS) - 1)
    assert read_by_us(data, codec) == RECORDS


@codecs
@pytest.mark.parametrize("peer", READERS)
def test_they_read_what_we_build(peer: str, codec: Codec, twin: ModuleType) -> None:
    first = build_batch(
        RECORDS[:120], codec=codec, base_offset=1000, producer_id=9, base_sequence=4
    )
    second = build_batch(RECORDS[120:], codec=codec, base_offset=1120)
    batches = READERS[peer](first + second)
    read = []
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        assert batch.compression_type == codec
        read += list(batch)
    assert facts_of_peers(read) == RECORDS
    assert [record.offset for record in read] == list(range(1000, 1000 + len(RECORDS)))


def facts_of_peers(records: list[Any]) -> list[Record]:
    return [
        (record.timestamp, record.key, record.value, [tuple(header) for header in record.headers])
        for record in records
    ]


# The first format's own kind of lz4 frame is written by neither; golden bytes have it.
@pytest.mark.parametrize(
    ("magic", "codec"),
    [(magic, codec) for magic in (0, 1) for codec in CODECS[: 3 + magic]],
    ids=lambda value: value.name if isinstance(value, Codec) else f"magic {value}",
)
@pytest.mark.parametrize("builder", [KafkaPythonLegacyBuilder, AiokafkaLegacyBuilder])
def test_we_read_their_legacy_messages(
    builder: Any, magic: int, codec: Codec, twin: ModuleType
) -> None:
    messages = builder(magic, codec, 1 << 20)
    for offset, (timestamp, key, value, _) in enumerate(RECORDS):
        assert messages.append(offset, timestamp if magic else None, key=key, value=value)
    data = bytes(messages.build())
    read = [record for batch in iter_batches(data) for record in batch.decode()]
    assert {batch.codec for batch in iter_batches(data)} == {codec}
    assert [(record.offset, record.key, record.value) for record in read] == [
        (offset, key, value) for offset, (_, key, value, _) in enumerate(RECORDS)
    ]
    assert [record.timestamp for record in read] == [
        timestamp if magic else -1 for timestamp, *_ in RECORDS
    ]


@pytest.fixture(scope="module")
def mock() -> Iterator[MockBroker]:
    with mock_broker() as broker:
        yield broker


@codecs
def test_we_read_what_confluent_kafka_sends(
    codec: Codec, mock: MockBroker, twin: ModuleType, request: pytest.FixtureRequest
) -> None:
    topic = f"theirs-{request.node.callspec.id}"
    producer = Producer(
        {
            "bootstrap.servers": mock.bootstrap_servers,
            "compression.type": codec.name.lower(),
            "linger.ms": 1000,
            "enable.idempotence": True,
        }
    )
    for timestamp, key, value, headers in RECORDS:
        producer.produce(topic, value, key, 0, timestamp=timestamp, headers=headers)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    data = mock.fetch(topic, 0)
    batches = list(iter_batches(data))
    assert all(batch.producer_id >= 0 for batch in batches)
    assert read_by_us(data, codec) == RECORDS


@codecs
def test_confluent_kafka_reads_what_we_send(
    codec: Codec, mock: MockBroker, twin: ModuleType, request: pytest.FixtureRequest
) -> None:
    topic = f"ours-{request.node.callspec.id}"
    mock.create_topic(topic)
    for records in (RECORDS[:150], RECORDS[150:]):
        mock.produce(topic, 0, build_batch(records, codec=codec))
    consumer = Consumer(
        {
            "bootstrap.servers": mock.bootstrap_servers,
            "group.id": topic,
            "check.crcs": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(len(RECORDS), TIMEOUT_SECONDS)
        read = [
            (message.timestamp()[1], message.key(), message.value(), message.headers() or [])
            for message in messages
        ]
    finally:
        consumer.close()
    assert [message.error() for message in messages if message.error()] == []
    assert read == RECORDS
