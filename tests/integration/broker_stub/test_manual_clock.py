"""A broker whose time the test moves: what would take long is over at once."""

import time
from collections.abc import Callable, Iterator

import pytest

from broker_stub import Broker
from pyclient.clock import ManualClock
from pyclient.errors import UnknownMemberIdError
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch, produce_request

HOUR_MS = 3_600_000
DEADLINE_SECONDS = 20


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> Iterator[Broker]:
    config = {"log.retention.check.interval.ms": 60_000, "log.segment.delete.delay.ms": 60_000}
    with Broker(clock=clock, config=config) as running:
        running.create_topic("orders", config={"retention.ms": HOUR_MS, "segment.bytes": 1024})
        yield running


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"


def test_a_fetch_that_waits_for_an_hour_ends_when_the_clock_says_so(broker, clock):
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="orders", partitions=[partition])]
    with RawClient(broker.port) as client:
        client.send(FetchRequest(max_wait_ms=HOUR_MS, min_bytes=1, topics=topics), 12)
        wait_until(lambda: broker.call(lambda node: len(node.purgatory)) == 1)
        clock.advance(HOUR_MS)
        (topic,) = client.receive().responses
    assert topic.partitions[0].error_code == 0


def test_a_member_is_gone_when_the_clock_is_past_its_session(broker, clock):
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    join = JoinGroupRequest(
        group_id="group",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=protocols,
    )
    with RawClient(broker.port) as client:
        client.ask(FindCoordinatorRequest(key="group"), 3)
        member = client.ask(join, 3)
        heartbeat = HeartbeatRequest(
            group_id="group", generation_id=member.generation_id, member_id=member.member_id
        )
        assert client.ask(heartbeat, 3).error_code == 0
        clock.advance(29_999)
        assert client.ask(heartbeat, 3).error_code == 0
        clock.advance(30_000)
        assert client.ask(heartbeat, 3).error_code == UnknownMemberIdError.code


def test_an_answer_is_as_late_as_the_clock_says(broker, clock):
    broker.faults.delay(ApiVersionsRequest, HOUR_MS)
    with RawClient(broker.port) as client:
        client.send(ApiVersionsRequest(), 0)
        wait_until(
            lambda: broker.call(lambda node: node.timers.next_deadline_ms()) == HOUR_MS,
        )
        clock.advance(HOUR_MS)
        assert client.receive().error_code == 0


def test_old_records_are_deleted_when_the_clock_says_so(broker, clock):
    with RawClient(broker.port) as client:
        for _ in range(3):
            records = batch(b"x" * 800, timestamp_ms=clock.now_ms())
            client.ask(produce_request("orders", records), 9)
    clock.advance(HOUR_MS + 1)

    def start_offset() -> int:
        return broker.call(lambda node: node.replicas.partition("orders", 0).log_start_offset)

    clock.advance(60_000)
    wait_until(lambda: start_offset() > 0)


def test_records_are_dated_by_the_clock(broker, clock):
    broker.create_topic("dated", config={"message.timestamp.type": "LogAppendTime"})
    clock.advance(5)
    with RawClient(broker.port) as client:
        response = client.ask(produce_request("dated", batch(b"v")), 9)
    (outcome,) = response.responses[0].partition_responses
    assert outcome.log_append_time_ms == clock.now_ms()
