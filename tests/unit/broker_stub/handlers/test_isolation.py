"""Readers of committed records: where Fetch and ListOffsets stop, and what they say to skip."""

from typing import Any

import pytest

from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pyclient.records.batch import iter_batches
from pyclient.records.control import EndTransactionMarker, build_end_transaction_marker
from tests.support.node_harness import NodeHarness, Pending, batch

UNCOMMITTED, COMMITTED = 0, 1
LATEST, MAX_TIMESTAMP = -1, -3


def write(harness: NodeHarness, producer_id: int, *values: bytes, time_ms: int = 1000) -> None:
    """Records of a producer's transaction."""
    fields = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
    append(harness, batch(*values, timestamp_ms=time_ms, transactional=True, **fields))


def end(harness: NodeHarness, producer_id: int, *, committed: bool, time_ms: int = 1000) -> None:
    append(
        harness,
        build_end_transaction_marker(
            EndTransactionMarker(committed, 0),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp_ms=time_ms,
        ),
    )


def append(harness: NodeHarness, buffer: bytes) -> None:
    harness.node.replicas.append(harness.node.replicas.partition("orders", 0), bytearray(buffer))


def start_fetch(harness: NodeHarness, level: int, offset: int = 0, **fields: Any) -> Pending:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        **{"max_wait_ms": 0, "min_bytes": 1, **fields},
        isolation_level=level,
        topics=[FetchTopic(topic="orders", partitions=[partition])],
    )
    return harness.start(request, 12)


def fetch(harness: NodeHarness, level: int, offset: int = 0) -> PartitionData:
    return start_fetch(harness, level, offset).response.responses[0].partitions[0]


def offsets(data: PartitionData) -> list[int]:
    return [one.base_offset for one in iter_batches(data.records)]


def aborted(data: PartitionData) -> list[tuple[int, int]] | None:
    if data.aborted_transactions is None:
        return None
    return [(one.producer_id, one.first_offset) for one in data.aborted_transactions]


def look_up(harness: NodeHarness, level: int, timestamp: int) -> ListOffsetsPartitionResponse:
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=level,
        topics=[
            ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition(timestamp=timestamp)])
        ],
    )
    return harness.ask(request, 10).topics[0].partitions[0]


@pytest.fixture
def orders(harness: NodeHarness) -> NodeHarness:
    """Transactions: one aborted (0, marker 2), one committed (1, marker 4), one open (3, 5)."""
    harness.create_topic("orders")
    write(harness, 1, b"aborted")
    write(harness, 2, b"committed")
    end(harness, 1, committed=False)
    write(harness, 3, b"open", time_ms=2000)
    end(harness, 2, committed=True)
    write(harness, 3, b"open too", time_ms=3000)
    return harness


def test_a_fetch_of_all_records_gets_all_and_no_list(orders):
    data = fetch(orders, UNCOMMITTED)
    assert offsets(data) == [0, 1, 2, 3, 4, 5]
    assert aborted(data) is None
    assert (data.high_watermark, data.last_stable_offset) == (6, 3)


def test_a_fetch_of_committed_records_stops_at_the_open_transaction(orders):
    data = fetch(orders, COMMITTED)
    assert offsets(data) == [0, 1, 2]
    assert aborted(data) == [(1, 0)]
    assert (data.high_watermark, data.last_stable_offset) == (6, 3)


def test_only_transactions_that_reach_into_what_is_fetched_are_listed(orders):
    end(orders, 3, committed=False)
    write(orders, 1, b"later")
    end(orders, 1, committed=False)
    assert aborted(fetch(orders, COMMITTED)) == [(1, 0), (3, 3), (1, 7)]
    assert aborted(fetch(orders, COMMITTED, 3)) == [(3, 3), (1, 7)]
    assert aborted(fetch(orders, COMMITTED, 7)) == [(1, 7)]


def test_at_the_last_stable_offset_there_is_nothing_yet(orders):
    data = fetch(orders, COMMITTED, 3)
    assert offsets(data) == []
    assert aborted(data) == []


def test_the_end_of_a_transaction_wakes_who_waits_for_committed_records(orders):
    waiting = start_fetch(orders, COMMITTED, 3, max_wait_ms=1000)
    append(orders, batch(b"not it"))
    assert not waiting.arrived
    end(orders, 3, committed=True)
    data = waiting.response.responses[0].partitions[0]
    assert offsets(data) == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("clean", [True, False])
def test_aborted_transactions_are_known_after_a_restart(orders, clean):
    orders.restart(clean=clean)
    data = fetch(orders, COMMITTED)
    assert offsets(data) == [0, 1, 2]
    assert aborted(data) == [(1, 0)]


def test_the_latest_offset_is_the_last_stable_one_for_committed_records(orders):
    assert look_up(orders, UNCOMMITTED, LATEST).offset == 6
    assert look_up(orders, COMMITTED, LATEST).offset == 3


def test_a_time_does_not_lead_past_the_last_stable_offset(orders):
    for timestamp in (2000, MAX_TIMESTAMP):
        assert look_up(orders, UNCOMMITTED, timestamp).offset >= 3
        assert look_up(orders, COMMITTED, timestamp).offset == -1
    assert look_up(orders, COMMITTED, 1000).offset == 0


def test_hanging_transactions_are_told_of_at_the_start(harness, caplog):
    harness.create_topic("orders")
    write(harness, 1, b"a")
    end(harness, 1, committed=True)
    harness.restart()
    assert "hanging transactions" not in caplog.text
    write(harness, 2, b"b")
    harness.restart()
    assert "hanging transactions: orders-0 (producer id 2)" in caplog.text
