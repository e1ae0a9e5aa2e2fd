"""ListOffsets: first, last, and by time."""

import pytest

from pyclient.error_codes import (
    InvalidRequestError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.support.node_harness import NodeHarness, batch, produce_request

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


def look_up(
    harness: NodeHarness, timestamp: int, version: int = 10, topic: str = "orders", epoch: int = -1
) -> ListOffsetsPartitionResponse:
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[ListOffsetsPartition(timestamp=timestamp, current_leader_epoch=epoch)],
            )
        ],
    )
    return harness.ask(request, version).topics[0].partitions[0]


@pytest.fixture
def orders(harness: NodeHarness) -> NodeHarness:
    """Three batches, the second one with the latest time."""
    harness.create_topic("orders")
    for time_ms, values in ((1000, (b"a", b"b")), (3000, (b"c",)), (2000, (b"d",))):
        harness.ask(produce_request("orders", batch(*values, timestamp_ms=time_ms)), 9)
    return harness


@pytest.mark.parametrize("version", range(1, 11))
@pytest.mark.parametrize(("timestamp", "offset"), [(LATEST, 4), (EARLIEST, 0)])
def test_first_and_last_offsets_in_every_version(orders, version, timestamp, offset):
    found = look_up(orders, timestamp, version)
    assert (found.error_code, found.offset, found.timestamp) == (0, offset, -1)


@pytest.mark.parametrize(
    ("timestamp", "offset", "time_ms"),
    [(0, 0, 1000), (1000, 0, 1000), (1001, 2, 3000), (3000, 2, 3000), (3001, -1, -1)],
)
def test_a_time_finds_the_first_record_at_or_after_it(orders, timestamp, offset, time_ms):
    found = look_up(orders, timestamp)
    assert (found.offset, found.timestamp) == (offset, time_ms)


def test_the_largest_timestamp_is_found_where_it_is(orders):
    found = look_up(orders, MAX_TIMESTAMP)
    assert (found.offset, found.timestamp) == (2, 3000)


@pytest.mark.parametrize("timestamp", [-6, -7, -(2**63)])
def test_other_negative_timestamps_mean_nothing_here(orders, timestamp):
    assert look_up(orders, timestamp).error_code == UnsupportedVersionError.code


def test_nothing_is_tiered(orders):
    assert look_up(orders, EARLIEST_LOCAL).offset == 0
    assert look_up(orders, LATEST_TIERED).offset == -1


def test_an_empty_partition_starts_and_ends_at_0(harness):
    harness.create_topic("orders")
    assert look_up(harness, LATEST).offset == 0
    assert look_up(harness, EARLIEST).offset == 0
    assert look_up(harness, MAX_TIMESTAMP).offset == -1
    assert look_up(harness, 1000).offset == -1


def test_a_special_timestamp_needs_its_version(orders):
    assert look_up(orders, MAX_TIMESTAMP, version=6).error_code == UnsupportedVersionError.code


def test_a_missing_topic_is_told_so(harness):
    found = look_up(harness, LATEST, topic="missing")
    assert (found.error_code, found.offset) == (UnknownTopicOrPartitionError.code, -1)


def test_an_unknown_leader_epoch_is_told_so(orders):
    assert look_up(orders, LATEST, epoch=9).error_code == UnknownLeaderEpochError.code


def test_the_leader_epoch_of_a_found_record_comes_with_it(orders):
    assert look_up(orders, 1000).leader_epoch == 0
    assert look_up(orders, EARLIEST).leader_epoch == 0


def test_a_partition_that_stands_twice_in_a_request_is_refused_and_the_others_are_not(orders):
    orders.create_topic("payments")
    once, twice = (
        ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(timestamp=LATEST)])
        for name in ("payments", "orders")
    )
    request = ListOffsetsRequest(replica_id=-1, topics=[once, twice, twice])
    found = [topic.partitions[0].error_code for topic in orders.ask(request, 10).topics]
    assert found == [0, InvalidRequestError.code, InvalidRequestError.code]
