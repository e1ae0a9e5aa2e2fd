"""The wall clock set back, by an hour or to another year: order, lookups and retention hold."""

from pathlib import Path

import pytest

from pyclient.clock import ManualClock
from pyclient.protocol.messages.fetch import FetchRequest
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.support.logs import read_batches
from tests.support.node_harness import NodeHarness, batch, produce_request

HOUR_MS = 3_600_000


class WallClock(ManualClock):
    """A clock whose wall reading can be set; the monotonic one only goes on."""

    def set_back(self, milliseconds: int) -> None:
        self._start_ms -= milliseconds


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
def harness(tmp_path: Path, clock: WallClock) -> NodeHarness:
    made = NodeHarness(tmp_path, clock=clock)
    made.create_topic("orders", message_timestamp_type="LogAppendTime", segment_ms="60000")
    return made


def produce(harness: NodeHarness, **fields: int) -> tuple[int, int]:
    """The offset and the time that the broker says."""
    request = produce_request("orders", batch(b"value", **fields))
    (outcome,) = harness.ask(request, 9).responses[0].partition_responses
    assert outcome.error_code == 0
    return outcome.base_offset, outcome.log_append_time_ms


def offset_for(harness: NodeHarness, timestamp_ms: int) -> int:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp_ms)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="orders", partitions=[asked])]
    )
    found: int = harness.ask(request, 7).topics[0].partitions[0].offset
    return found


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("back_ms", [1, HOUR_MS, 20 * 365 * 24 * HOUR_MS])
def test_records_keep_their_order_and_are_found_by_time(harness, clock, clean, back_ms):
    start_ms = clock.now_ms()
    assert produce(harness) == (0, start_ms)
    clock.set_back(back_ms)
    assert produce(harness) == (1, start_ms - back_ms)
    clock.advance(back_ms + 1000)
    assert produce(harness) == (2, start_ms + 1000)
    for _ in range(2):
        log = harness.node.replicas.partition("orders", 0).log
        assert [one.base_offset for one in read_batches(log)] == [0, 1, 2]
        # The first record that is not older, in the order of the log.
        assert offset_for(harness, start_ms) == 0
        assert offset_for(harness, start_ms + 1) == 2
        assert offset_for(harness, start_ms + 2000) == -1
        assert offset_for(harness, -3) == 2
        harness.restart(clean=clean)
    assert produce(harness)[0] == 3


def test_nothing_is_deleted_before_its_time_and_a_segment_is_not_rolled_for_it(harness, clock):
    produce(harness)
    clock.set_back(HOUR_MS)
    produce(harness)
    log = harness.node.replicas.partition("orders", 0).log
    assert len(log.segments) == 1
    clock.advance(300_000)
    harness.node.logs.run_due()
    assert (log.log_start_offset, log.log_end_offset) == (0, 2)


def test_a_producer_is_remembered_and_a_waiting_fetch_ends_in_its_time(harness, clock):
    numbered = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    first = produce(harness, **numbered)
    waiting = harness.start(FetchRequest(max_wait_ms=500, min_bytes=1, topics=[]), 12)
    clock.set_back(30 * 24 * HOUR_MS)
    clock.advance(600_000)  # producers are looked through in the meantime
    harness.node.logs.run_due()
    harness.node.timers.fire()
    assert waiting.arrived
    assert produce(harness, **numbered)[0] == first[0]
    assert harness.node.replicas.partition("orders", 0).log_end_offset == 1
