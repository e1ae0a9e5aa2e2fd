"""DeleteRecords: the start of a partition moves forward."""

from typing import Any

import pytest

from broker_stub.metadata.image import CONSUMER_OFFSETS
from pyclient.error_codes import (
    InvalidTopicError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.node_harness import NodeHarness, batch, produce_request


def delete(
    harness: NodeHarness, offset: int, topic: str = "orders", partition: int = 0, version: int = 2
) -> Any:
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    topics = [DeleteRecordsTopic(name=topic, partitions=[asked])]
    response = harness.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1000), version)
    return response.topics[0].partitions[0]


def fetch(offset: int, **fields: Any) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_bytes=1 << 20, topics=[FetchTopic(topic="orders", partitions=[partition])], **fields
    )


@pytest.fixture(autouse=True)
def ten_records(harness: NodeHarness) -> None:
    harness.create_topic("orders")
    for _ in range(10):
        harness.ask(produce_request("orders", batch(b"v")), 9)


@pytest.mark.parametrize("version", range(3))
def test_records_before_the_offset_are_gone(harness, version):
    result = delete(harness, 4, version=version)
    assert (result.error_code, result.low_watermark) == (0, 4)
    (partition,) = harness.ask(fetch(3), 11).responses[0].partitions
    assert partition.error_code == OffsetOutOfRangeError.code
    (partition,) = harness.ask(fetch(4), 11).responses[0].partitions
    assert (partition.error_code, partition.log_start_offset) == (0, 4)


def test_minus_1_deletes_everything_that_can_be_read(harness):
    assert delete(harness, -1).low_watermark == 10
    assert harness.node.replicas.partition("orders", 0).log_start_offset == 10


def test_an_offset_before_the_start_changes_nothing(harness):
    delete(harness, 4)
    result = delete(harness, 2)
    assert (result.error_code, result.low_watermark) == (0, 4)


@pytest.mark.parametrize("offset", [11, -2])
def test_an_offset_that_can_not_be_is_out_of_range(harness, offset):
    result = delete(harness, offset)
    assert (result.error_code, result.low_watermark) == (OffsetOutOfRangeError.code, -1)
    assert harness.node.replicas.partition("orders", 0).log_start_offset == 0


def test_it_survives_a_clean_restart(harness):
    delete(harness, 4)
    harness.restart()
    assert harness.node.replicas.partition("orders", 0).log_start_offset == 4


def test_a_fetch_that_waits_where_records_are_gone_is_told(harness):
    waiting = harness.start(fetch(9, min_bytes=1000, max_wait_ms=60_000), 11)
    assert not waiting.arrived
    delete(harness, -1)
    (partition,) = waiting.response.responses[0].partitions
    assert partition.error_code == OffsetOutOfRangeError.code


def test_what_is_not_there_is_told_so(harness):
    assert delete(harness, 0, "missing").error_code == UnknownTopicOrPartitionError.code
    assert delete(harness, 0, partition=7).error_code == UnknownTopicOrPartitionError.code


def test_a_compacted_topic_keeps_its_records(harness):
    harness.create_topic("compacted", cleanup_policy="compact")
    assert delete(harness, 0, "compacted").error_code == PolicyViolationError.code
    harness.create_topic("both", cleanup_policy="compact,delete")
    assert delete(harness, 0, "both").error_code == 0


def test_the_brokers_own_topics_keep_theirs(harness):
    harness.create_topic(CONSUMER_OFFSETS)
    assert delete(harness, 0, CONSUMER_OFFSETS).error_code == InvalidTopicError.code
