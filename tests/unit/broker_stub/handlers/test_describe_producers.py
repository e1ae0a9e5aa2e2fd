"""DescribeProducers: who wrote to a partition with an id."""

from typing import Any

from pyclient.error_codes import UnknownTopicOrPartitionError
from pyclient.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tests.support.node_harness import NodeHarness, batch, produce_request


def producers(harness: NodeHarness, topic: str = "orders", partition: int = 0) -> Any:
    topics = [TopicRequest(name=topic, partition_indexes=[partition])]
    return harness.ask(DescribeProducersRequest(topics=topics)).topics[0].partitions[0]


def test_producers_with_an_id_are_listed_and_others_are_not(harness):
    harness.create_topic("orders")
    assert producers(harness).active_producers == []
    harness.ask(produce_request("orders", batch(b"plain")), 9)
    written = batch(b"a", b"b", producer_id=7, producer_epoch=3, base_sequence=0, timestamp_ms=500)
    harness.ask(produce_request("orders", written), 9)
    (found,) = producers(harness).active_producers
    assert (found.producer_id, found.producer_epoch) == (7, 3)
    assert (found.last_sequence, found.last_timestamp) == (1, 500)
    assert (found.coordinator_epoch, found.current_txn_start_offset) == (-1, -1)


def test_they_are_remembered_over_a_restart(harness):
    harness.create_topic("orders")
    written = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    harness.ask(produce_request("orders", written), 9)
    harness.restart()
    (found,) = producers(harness).active_producers
    assert (found.producer_id, found.last_sequence) == (7, 0)


def test_what_is_not_there_is_told_so(harness):
    harness.create_topic("orders")
    for missing in (producers(harness, "missing"), producers(harness, partition=3)):
        assert missing.error_code == UnknownTopicOrPartitionError.code
        assert missing.error_message
