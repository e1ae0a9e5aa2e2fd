"""Stalls: each fault that can plant one is reported within ten seconds, and heals when it ends.

Real consumers and the real broker, on a simulated clock and network.
"""

import logging

import pytest

from broker_stub.testing.simulation import Simulation
from broker_stub.testing.simulation.conditions import CALM
from broker_stub.testing.when import Always
from pyclient import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from pyclient.consumer.health import monitor
from pyclient.errors import (
    CoordinatorNotAvailableError,
    KafkaStorageError,
    LeaderNotAvailableError,
)
from pyclient.protocol.messages.fetch import FetchRequest
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.list_offsets import ListOffsetsRequest
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
REPORTED_WITHIN_MS = 10_000
HEALED_WITHIN_MS = 60_000


@pytest.fixture(autouse=True, params=["few", "many"])
def number_of_partitions(request, monkeypatch):
    """Two partitions are few, or count as many, which are not all looked at every time."""
    if request.param == "many":
        monkeypatch.setattr(monitor, "_MANY", 1)
    return request.param


class Reader:
    """A world with a topic of two partitions, and a consumer whose program only polls."""

    def __init__(self, world, **options):
        self.world = world
        self.consumer = KafkaConsumer(
            **world.client(),
            auto_offset_reset="earliest",
            metadata_max_age_ms=2_000,
            request_timeout_ms=10_000,
            **options,
        )
        self.values = []

    def now_ms(self):
        return self.world.clock.monotonic_ms()

    def send(self, *values):
        with KafkaProducer(**self.world.client()) as producer:
            for value in values:
                for partition in (0, 1):
                    producer.send("orders", value, partition=partition)

    def poll_until(self, condition, timeout_ms):
        """Poll until the condition holds; the time it took."""
        began_ms = self.now_ms()
        while not condition():
            waited_ms = self.now_ms() - began_ms
            assert waited_ms <= timeout_ms, f"not within {timeout_ms} ms: {self.consumer.health()}"
            for records in self.consumer.poll(timeout_ms=200).values():
                self.values += [record.value for record in records]
        return self.now_ms() - began_ms

    def idle(self, milliseconds):
        end_ms = self.now_ms() + milliseconds
        self.poll_until(lambda: self.now_ms() >= end_ms, milliseconds + 1_000)

    def read(self, count, timeout_ms=HEALED_WITHIN_MS):
        self.poll_until(lambda: len(self.values) >= count, timeout_ms)

    def stall(self):
        """The stall that is reported in time."""
        self.poll_until(lambda: self.consumer.health().stalls, REPORTED_WITHIN_MS)
        health = self.consumer.health()
        assert not health.is_healthy
        return health.stalls[0]

    def healed(self):
        self.poll_until(lambda: self.consumer.health().is_healthy, HEALED_WITHIN_MS)

    def recover(self, count):
        """Read the records, be healthy again, and close."""
        self.read(count)
        self.healed()
        self.consumer.close()


def in_world(scenario):
    """Run a test as the program of a calm world."""
    with Simulation(1, CALM, broker_config={"offsets.topic.num.partitions": 1}) as world:
        world.broker.create_topic("orders", 2)
        world.program(scenario, world)
        world.run()


def stall_lines(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.endswith("health.monitor") and record.levelno >= logging.WARNING
    ]


def test_an_idle_consumer_is_healthy(caplog):
    def scenario(world):
        with Reader(world, group_id="g").consumer as consumer:
            reader = Reader(world, group_id="g2")
            reader.consumer.subscribe(["orders"])
            reader.send(b"a")
            reader.read(2)
            reader.idle(60_000)
            health = reader.consumer.health()
            assert health.is_healthy
            assert {one.state for one in health.partitions.values()} == {"caught up"}
            assert {one.lag for one in health.partitions.values()} == {0}
            assert health.membership.state == "stable"
            assert health.membership.generation_id == 1
            assert health.membership.coordinator.startswith("node ")
            assert health.membership.last_heartbeat_s_ago < 4
            assert health.membership.last_poll_s_ago < 1
            assert all(one.last_fetch_s_ago < 2 for one in health.partitions.values())
            assert consumer.health().is_healthy  # has nothing to do at all
            reader.consumer.close()

    in_world(scenario)
    assert stall_lines(caplog) == []


def test_a_fetch_that_is_never_answered(caplog):
    def scenario(world):
        reader = Reader(world)
        reader.consumer.assign([P0, P1])
        reader.send(b"a")
        reader.read(2)
        fault = world.broker.faults.delay(FetchRequest, 10**9)
        stall = reader.stall()
        assert stall.what in ("orders-0", "orders-1")
        assert "has not answered a fetch for" in stall.reason
        assert reader.consumer.health().partitions[P0].state == "waiting"
        assert reader.consumer.metrics()["consumer-metrics"]["stalls"] == 2
        fault.cancel()
        reader.send(b"b")
        reader.read(4)
        reader.healed()
        reader.consumer.close()

    in_world(scenario)
    begun, ended = stall_lines(caplog)[:2], stall_lines(caplog)[2:]
    assert all("is stalled for" in line and "not answered a fetch" in line for line in begun)
    assert len(ended) == 2
    assert all("goes on after" in line for line in ended)


def test_a_coordinator_that_is_gone(caplog):
    def scenario(world):
        reader = Reader(world, group_id="g")
        reader.consumer.subscribe(["orders"])
        reader.send(b"a")
        reader.read(2)
        faults = [
            world.broker.faults.drop(HeartbeatRequest),
            world.broker.faults.fail(
                FindCoordinatorRequest, CoordinatorNotAvailableError, Always()
            ),
        ]
        stall = reader.stall()
        assert stall.what == "the membership"
        assert "the coordinator of group 'g' is unknown" in stall.reason
        assert reader.consumer.health().membership.coordinator is None
        for fault in faults:
            fault.cancel()
        reader.healed()
        reader.send(b"b")
        reader.read(4)
        reader.consumer.close()

    in_world(scenario)
    begun, ended = stall_lines(caplog)
    assert "group g: the membership is stalled for" in begun
    assert "group g: the membership goes on after" in ended


def test_a_coordinator_that_does_not_answer_heartbeats():
    def scenario(world):
        reader = Reader(world, group_id="g")
        reader.consumer.subscribe(["orders"])
        reader.send(b"a")
        reader.read(2)
        fault = world.broker.faults.delay(HeartbeatRequest, 10**9)
        assert "does not answer heartbeats" in reader.stall().reason
        fault.cancel()
        reader.healed()
        reader.consumer.close()

    in_world(scenario)


def test_a_coordinator_that_cannot_be_found_at_the_start():
    def scenario(world):
        fault = world.broker.faults.fail(
            FindCoordinatorRequest, CoordinatorNotAvailableError, Always()
        )
        reader = Reader(world, group_id="g")
        reader.consumer.subscribe(["orders"])
        stall = reader.stall()
        assert "the coordinator of group 'g' is unknown: finding it failed" in stall.reason
        fault.cancel()
        reader.send(b"a")
        reader.recover(2)

    in_world(scenario)


def test_a_leader_that_does_not_exist():
    def scenario(world):
        reader = Reader(world)
        reader.send(b"a")
        fault = world.broker.faults.fail(
            MetadataRequest, LeaderNotAvailableError, Always(), topic="orders"
        )
        reader.consumer.assign([P0, P1])
        reader.consumer.seek(P0, 0)
        stall = reader.stall()
        assert "the cluster has no topic 'orders' (LeaderNotAvailableError)" in stall.reason
        assert reader.consumer.health().partitions[P0].state == "leaderless"
        assert reader.consumer.health().partitions[P0].leader is None
        fault.cancel()
        reader.recover(2)

    in_world(scenario)


def test_fetches_that_fail():
    def scenario(world):
        reader = Reader(world)
        reader.consumer.assign([P0, P1])
        reader.send(b"a")
        reader.read(2)
        fault = world.broker.faults.fail(FetchRequest, KafkaStorageError, Always())
        stall = reader.stall()
        assert stall.what in ("orders-0", "orders-1")
        assert "KafkaStorageError" in stall.reason
        assert reader.consumer.health().partitions[P0].state == "failing"
        fault.cancel()
        reader.send(b"b")
        reader.recover(4)

    in_world(scenario)


def test_an_offset_that_is_never_looked_up():
    def scenario(world):
        reader = Reader(world)
        reader.send(b"a")
        fault = world.broker.faults.delay(ListOffsetsRequest, 10**9)
        reader.consumer.assign([P0, P1])
        stall = reader.stall()
        assert stall.reason == "its offset is looked up at node 1"
        assert reader.consumer.health().partitions[P0].state == "starting"
        fault.cancel()
        reader.recover(2)

    in_world(scenario)


def test_a_position_that_is_never_validated():
    def scenario(world):
        reader = Reader(world)
        reader.consumer.assign([P0, P1])
        reader.send(b"a")
        reader.read(2)
        fault = world.broker.faults.delay(OffsetForLeaderEpochRequest, 10**9)
        reader.consumer.seek(P0, OffsetAndMetadata(1, "", 0))
        stall = reader.stall()
        assert stall.what == "orders-0"
        assert stall.reason == "its position is validated with node 1"
        assert reader.consumer.health().partitions[P0].state == "validating"
        fault.cancel()
        reader.send(b"b")
        reader.recover(4)

    in_world(scenario)


def test_a_join_that_is_never_answered_on_a_connection_that_looks_alive():
    def scenario(world):
        fault = world.broker.faults.delay(JoinGroupRequest, 10**9)
        reader = Reader(world, group_id="g", session_timeout_ms=10_000)
        reader.consumer.subscribe(["orders"])
        stall = reader.stall()
        assert stall.what == "the membership"
        assert stall.reason == "it waits for the coordinator's answer to JoinGroup"
        assert reader.consumer.health().membership.state == "joining"
        fault.cancel()
        reader.send(b"a")
        reader.recover(2)

    in_world(scenario)


def test_a_partition_that_the_broker_leaves_out_of_its_fetch_session(caplog):
    def scenario(world):
        reader = Reader(world)
        reader.consumer.assign([P0, P1])
        reader.send(b"a")
        reader.read(2)
        reader.idle(2_000)  # so that the client has nothing to say about it
        for session in world.broker.node.fetch_sessions._sessions.values():
            (forgotten,) = [key for key in session.targets if key[-1] == 1]
            del session.targets[forgotten]
        reader.idle(1_000)
        reader.send(b"b")
        stall = reader.stall()
        assert stall.what == "orders-1"
        assert "left it out of the fetch session" in stall.reason
        reader.read(4)
        reader.healed()
        reader.consumer.close()

    in_world(scenario)
    assert len(stall_lines(caplog)) == 2


@pytest.mark.parametrize("state", ["paused", "held", "buffered"])
def test_what_waits_for_the_program_is_not_a_stall(state):
    def scenario(world):
        reader = Reader(world, fetch_buffer_bytes=1)
        reader.consumer.assign([P0, P1])
        if state != "held":
            reader.send(b"a")
            reader.read(2)
        if state == "paused":
            reader.consumer.pause(P0, P1)
        if state == "buffered":
            reader.send(b"b", b"c")
            world.sleep(1_000)
            reader.send(b"d")
        world.sleep(20_000)
        health = reader.consumer.health()
        assert health.is_healthy
        assert state in {one.state for one in health.partitions.values()}
        assert all(one.reason for one in health.partitions.values() if one.state == state)
        reader.consumer.close()

    in_world(scenario)
