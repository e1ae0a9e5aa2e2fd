"""Produce: what is appended, and what is refused."""

import pytest

from broker_stub.request import HANG_UP
from pyclient.error_codes import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    NotEnoughReplicasError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    TransactionalIdAuthorizationError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.produce import PartitionProduceResponse
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.records.batch import iter_batches
from pyclient.records.compression import Codec
from tests.support.node_harness import NodeHarness, batch, produce_request


def outcome(
    harness: NodeHarness, *batches: bytes, version: int = 12, topic: str = "orders", **fields
) -> PartitionProduceResponse:
    response = harness.ask(produce_request(topic, *batches, **fields), version)
    return response.responses[0].partition_responses[0]


def values_in(harness: NodeHarness, topic: str = "orders") -> list[bytes | None]:
    request = FetchRequest(
        max_wait_ms=0,
        topics=[
            FetchTopic(
                topic=topic, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)]
            )
        ],
    )
    data = harness.ask(request, 4).responses[0].partitions[0]
    return [record.value for one in iter_batches(data.records) for record in one.decode()]


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [1, -1])
def test_records_get_the_next_offsets_in_every_version(harness, version, acks):
    topic_id = harness.create_topic("orders")
    assert outcome(harness, batch(b"a", b"b"), topic_id=topic_id, version=version).base_offset == 0
    second = outcome(harness, batch(b"c"), topic_id=topic_id, version=version, acks=acks)
    assert second.error_code == 0
    assert second.base_offset == 2
    assert second.log_append_time_ms == -1
    assert values_in(harness) == [b"a", b"b", b"c"]


def test_log_append_time_is_the_brokers(harness):
    harness.create_topic("orders", message_timestamp_type="LogAppendTime")
    assert outcome(harness, batch(b"a")).log_append_time_ms == harness.clock.now_ms()


def test_acks_0_gets_no_answer(harness):
    harness.create_topic("orders")
    reply = harness.start(produce_request("orders", batch(b"a"), acks=0), 9).reply
    assert reply.parts == []
    assert not reply.close
    assert values_in(harness) == [b"a"]


def test_acks_0_that_fails_closes_the_connection(harness):
    assert harness.start(produce_request("missing", batch(b"a"), acks=0), 9).reply == HANG_UP


def test_other_acks_are_refused_for_every_partition(harness):
    harness.create_topic("orders")
    assert outcome(harness, batch(b"a"), acks=2).error_code == InvalidRequiredAcksError.code
    assert values_in(harness) == []


def test_acks_all_needs_enough_replicas_in_sync(harness):
    harness.create_topic("orders", min_insync_replicas="2")
    alone = harness.node.image.topic("orders").partitions[0]._replace(replicas=(1, 2), isr=(1,))
    harness.node.replicas.partition("orders", 0).update(alone)
    assert outcome(harness, batch(b"a"), acks=-1).error_code == NotEnoughReplicasError.code
    assert outcome(harness, batch(b"a"), acks=1).error_code == 0


def test_acks_all_needs_no_more_replicas_in_sync_than_there_are(harness):
    harness.create_topic("orders", min_insync_replicas="2")
    assert outcome(harness, batch(b"a"), acks=-1).error_code == 0


def test_a_missing_topic_is_not_created_by_producing_to_it(harness):
    failed = outcome(harness, batch(b"a"), topic="missing")
    assert failed.error_code == UnknownTopicOrPartitionError.code
    assert failed.base_offset == -1
    assert "missing" in failed.error_message


def test_a_missing_partition_is_told_so(harness):
    harness.create_topic("orders")
    failed = outcome(harness, batch(b"a"), partition=1)
    assert failed.error_code == UnknownTopicOrPartitionError.code


def test_an_unknown_topic_id_is_told_so(harness):
    failed = outcome(harness, batch(b"a"), topic_id=b"x" * 16, version=13)
    assert failed.error_code == UnknownTopicIdError.code


def test_clients_cannot_write_to_the_brokers_own_topics(harness):
    harness.create_topic("__consumer_offsets")
    failed = outcome(harness, batch(b"a", key=b"k"), topic="__consumer_offsets")
    assert failed.error_code == InvalidTopicError.code


def test_a_wrong_checksum_is_refused(harness):
    harness.create_topic("orders")
    damaged = bytearray(batch(b"a"))
    damaged[-1] ^= 1
    assert outcome(harness, bytes(damaged)).error_code == CorruptRecordError.code
    assert values_in(harness) == []


def test_too_large_a_batch_is_refused(harness):
    harness.create_topic("orders", max_message_bytes="100")
    assert outcome(harness, batch(b"x" * 200)).error_code == RecordTooLargeError.code


def test_no_records_are_refused(harness):
    harness.create_topic("orders")
    assert outcome(harness).error_code == InvalidRecordError.code


def test_a_transactional_batch_needs_a_transactional_id(harness):
    harness.create_topic("orders")
    failed = outcome(
        harness,
        batch(b"a", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
    )
    assert failed.error_code == TransactionalIdAuthorizationError.code


def test_a_repeated_batch_of_an_idempotent_producer_is_written_once(harness):
    harness.create_topic("orders")
    numbered = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0)
    assert outcome(harness, numbered).base_offset == 0
    again = outcome(harness, numbered)
    assert (again.error_code, again.base_offset) == (0, 0)
    assert values_in(harness) == [b"a"]


def test_a_gap_in_the_sequence_is_refused(harness):
    harness.create_topic("orders")
    outcome(harness, batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0))
    failed = outcome(harness, batch(b"c", producer_id=5, producer_epoch=0, base_sequence=2))
    assert failed.error_code == OutOfOrderSequenceError.code


def test_one_partition_that_fails_does_not_fail_the_others(harness):
    harness.create_topic("orders")
    request = produce_request("orders", batch(b"a"))
    request.topic_data += produce_request("missing", batch(b"b")).topic_data
    good, bad = harness.ask(request, 9).responses
    assert good.partition_responses[0].error_code == 0
    assert bad.partition_responses[0].error_code == UnknownTopicOrPartitionError.code


def test_records_are_flushed_before_the_ack_where_the_topic_wants_it(harness):
    harness.create_topic("orders", flush_messages="1")
    assert outcome(harness, batch(b"a")).base_offset == 0
    assert harness.node.replicas.partition("orders", 0).log.recovery_point == 1


def test_a_topic_named_by_id_is_answered_by_id(harness):
    topic_id = harness.create_topic("orders")
    response = harness.ask(produce_request("", batch(b"a"), topic_id=topic_id), 13)
    assert response.responses[0].topic_id == topic_id
    assert topic_id != ZERO_UUID


@pytest.mark.parametrize("version", [3, 6, 7, 13])
def test_zstd_needs_the_version_that_brought_it(harness, version):
    topic_id = harness.create_topic("orders")
    made = batch(b"a" * 1000, codec=Codec.ZSTD)
    refused = outcome(harness, made, topic_id=topic_id, version=version)
    expected = UnsupportedCompressionTypeError.code if version < 7 else 0
    assert refused.error_code == expected
    assert outcome(harness, batch(b"b"), topic_id=topic_id, version=version).error_code == 0
