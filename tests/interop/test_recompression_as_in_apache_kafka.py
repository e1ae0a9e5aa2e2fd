"""The same batches sent to our broker and to Apache Kafka, with `compression.type` set.

What both keep is compared: every field of the batch header that the broker decides, and every
record. Refused batches are answered alike, record by record.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from broker_stub import Broker
from pyclient import KafkaAdminClient
from pyclient.admin import NewTopic
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from pyclient.records.batch import RecordBatch, iter_batches
from pyclient.records.builder import BatchBuilder
from pyclient.records.compression import Codec
from tests.integration.broker_stub.raw_client import RawClient

TYPES = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
SENT_MS = 1_700_000_000_000
HEADER_FIELDS = (
    "base_offset",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)


def batch(
    codec: Codec, sequence: int, timestamp_ms: int, keys: Sequence[bytes | None] = (b"a", b"b")
) -> bytearray:
    """A batch of an idempotent producer: two sizes of values, headers, a tombstone."""
    builder = BatchBuilder(
        bytearray(100_000),
        codec=codec,
        producer_id=10**6,  # far from those that either broker hands out
        producer_epoch=0,
        base_sequence=sequence,
    )
    for index, key in enumerate(keys):
        value = None if index == 1 else b"value " * (500 * index + 1)
        headers = [("h", b"1"), ("h", None)] if index == 0 else []
        assert builder.try_append(timestamp_ms + index, key, value, headers) == index
    return bytearray(b"".join(builder.close()))


class Peer:
    """A broker under comparison."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._servers = f"127.0.0.1:{port}"

    def create(self, topic: str, **configs: str) -> None:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        with KafkaAdminClient(bootstrap_servers=self._servers) as admin:
            admin.create_topics([NewTopic(topic, 1, 1, topic_configs=named)])
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        deadline = time.monotonic() + 20
        while self.ask(request, 12).topics[0].error_code:
            assert time.monotonic() < deadline, topic

    def ask(self, request: Any, version: int) -> Any:
        with RawClient(self._port) as client:
            return client.ask(request, version)

    def produce(self, topic: str, records: bytearray) -> Any:
        data = PartitionProduceData(index=0, records=memoryview(records))
        request = ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        return self.ask(request, 9).responses[0].partition_responses[0]

    def fetch(self, topic: str, version: int = 11) -> Any:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 24)
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 24,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
        )
        return self.ask(request, version).responses[0].partitions[0]

    def batches(self, topic: str) -> list[RecordBatch]:
        found = []
        for one in iter_batches(memoryview(bytes(self.fetch(topic).records))):
            assert isinstance(one, RecordBatch)
            one.check_crc()
            found.append(one)
        return found


@pytest.fixture(scope="module")
def peers(apache) -> Iterator[tuple[Peer, Peer]]:
    with Broker() as broker:
        yield Peer(broker.port), Peer(apache.port)


@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("compression", TYPES)
def test_both_keep_the_same_batches(peers, compression, timestamp_type):
    topic = f"recompressed-{compression}-{timestamp_type}"
    kept = []
    for peer in peers:
        peer.create(topic, compression_type=compression, message_timestamp_type=timestamp_type)
        for index, codec in enumerate(Codec):
            sent = batch(codec, 3 * index, SENT_MS, (b"a", b"b", None))
            for _retry in range(2):  # a duplicate is dropped, whatever codec it comes in
                answer = peer.produce(topic, bytearray(sent))
                assert (answer.error_code, answer.base_offset) == (0, 3 * index), answer
        kept.append(peer.batches(topic))
    ours, theirs = kept
    assert len(ours) == len(theirs) == len(Codec)
    for mine, other in zip(ours, theirs, strict=True):
        assert [getattr(mine, field) for field in HEADER_FIELDS] == [
            getattr(other, field) for field in HEADER_FIELDS
        ]
        if timestamp_type == "CreateTime":
            assert mine.max_timestamp == other.max_timestamp == SENT_MS + 2
        told = [
            [(one.offset, one.key, one.value, one.headers) for one in records.decode()]
            for records in (mine, other)
        ]
        assert told[0] == told[1]
    codecs = [one.codec for one in ours]
    assert codecs == (
        list(Codec)
        if compression == "producer"
        else [Codec.NONE if compression == "uncompressed" else Codec[compression.upper()]] * 5
    )


@pytest.mark.parametrize("version", [9, 10])
def test_fetches_from_before_zstd_are_answered_alike(peers, version):
    topic = f"zstd-for-{version}"
    answers = []
    for peer in peers:
        peer.create(topic, compression_type="zstd")
        peer.produce(topic, batch(Codec.NONE, 0, SENT_MS))
        answers.append(peer.fetch(topic, version))
    ours, theirs = answers
    assert ours.error_code == theirs.error_code
    assert bool(ours.records) == bool(theirs.records)


def test_what_is_too_large_in_the_topics_codec_is_refused(peers):
    for peer in peers:
        peer.create("too-large", compression_type="uncompressed", max_message_bytes="2000")
        answer = peer.produce("too-large", batch(Codec.GZIP, 0, SENT_MS, (b"a",) * 3))
        assert (answer.error_code, answer.record_errors) == (10, [])


NOW_MS = int(time.time() * 1000)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize(
    ("configs", "keys", "timestamp_ms"),
    [
        ({"cleanup_policy": "compact"}, (b"k", None, None), NOW_MS),
        ({"cleanup_policy": "compact"}, (None,) * 5, NOW_MS),
        ({"cleanup_policy": "compact"}, (b"k", None), NOW_MS + 10**8),
        ({}, (b"k", None), NOW_MS + 10**8),
        ({"message_timestamp_before_max_ms": "1000"}, (b"k",), NOW_MS - 10**6),
    ],
    ids=str,
)
def test_records_at_fault_are_named_alike(peers, configs, keys, timestamp_ms, codec):
    topic = f"faults-{len(configs)}-{len(keys)}-{timestamp_ms - NOW_MS}-{codec.name}"

    def told(answer: Any) -> tuple[int, str | None, list[tuple[int, str]]]:
        return (
            answer.error_code,
            answer.error_message,
            [
                # The bounds are those of either broker's clock.
                (one.batch_index, one.batch_index_error_message.partition("within")[0])
                for one in answer.record_errors
            ],
        )

    for peer in peers:
        peer.create(topic, **configs)
    sent = batch(codec, 0, timestamp_ms, keys)
    ours, theirs = (told(peer.produce(topic, bytearray(sent))) for peer in peers)
    assert ours == theirs
    assert ours[2]
