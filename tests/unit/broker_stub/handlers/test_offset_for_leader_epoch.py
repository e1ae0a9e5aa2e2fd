"""OffsetForLeaderEpoch: where epochs end."""

from typing import Any

import pytest

from pyclient.error_codes import (
    FencedLeaderEpochError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.metadata_records import PartitionChangeRecord
from pyclient.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.node_harness import NodeHarness, batch, produce_request


def end_of(
    harness: NodeHarness,
    epoch: int,
    topic: str = "orders",
    current: int = -1,
    version: int = 4,
) -> Any:
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    topics = [OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    response = harness.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), version)
    return response.topics[0].partitions[0]


def elect_again(harness: NodeHarness, topic_id: bytes) -> None:
    """The same leader begins a new epoch."""
    record = PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=1)
    harness.node.image.apply(record, 0)


@pytest.mark.parametrize("version", range(2, 5))
def test_the_present_epoch_ends_with_the_log(harness, version):
    harness.create_topic("orders")
    found = end_of(harness, 0, version=version)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 0, 0)
    harness.ask(produce_request("orders", batch(b"a", b"b")), 9)
    found = end_of(harness, 0, version=version)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 0, 2)


def test_an_earlier_epoch_ends_where_the_next_one_starts(harness):
    topic_id = harness.create_topic("orders")
    harness.ask(produce_request("orders", batch(b"a", b"b")), 9)
    elect_again(harness, topic_id)
    harness.ask(produce_request("orders", batch(b"c")), 9)
    assert end_of(harness, 0).end_offset == 2
    assert end_of(harness, 1).end_offset == 3


def test_an_epoch_that_has_just_begun_is_known(harness):
    topic_id = harness.create_topic("orders")
    harness.ask(produce_request("orders", batch(b"a")), 9)
    elect_again(harness, topic_id)
    found = end_of(harness, 1)
    assert (found.leader_epoch, found.end_offset) == (1, 1)


@pytest.mark.parametrize("epoch", [-1, 7])
def test_an_epoch_that_never_was_has_no_end(harness, epoch):
    harness.create_topic("orders")
    found = end_of(harness, epoch)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, -1, -1)


def test_who_means_another_leader_is_told_so(harness):
    topic_id = harness.create_topic("orders")
    elect_again(harness, topic_id)
    assert end_of(harness, 0, current=1).error_code == 0
    assert end_of(harness, 0, current=0).error_code == FencedLeaderEpochError.code
    assert end_of(harness, 0, current=2).error_code == UnknownLeaderEpochError.code
    assert end_of(harness, 0, "missing").error_code == UnknownTopicOrPartitionError.code
