"""Broker restarts, moved coordinators and cut connections in every state: reading goes on.

Two members in a simulated world; the mishap comes at the first or a later request of an API. Every
record is read, the group settles, and what is committed is what was read.
"""

import pytest

from broker_stub.testing.simulation import Simulation
from broker_stub.testing.simulation.conditions import CALM
from broker_stub.testing.when import Nth
from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.errors import NotCoordinatorError
from pyclient.protocol.messages.fetch import FetchRequest
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.leave_group import LeaveGroupRequest
from pyclient.protocol.messages.list_offsets import ListOffsetsRequest
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from pyclient.protocol.messages.offset_fetch import OffsetFetchRequest
from pyclient.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from pyclient.protocol.messages.sync_group import SyncGroupRequest

PARTITIONS = [TopicPartition("orders", number) for number in range(4)]
GROUP_APIS = [
    FindCoordinatorRequest,
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    OffsetFetchRequest,
    OffsetCommitRequest,
    LeaveGroupRequest,
]
OTHER_APIS = [FetchRequest, ListOffsetsRequest, MetadataRequest, OffsetForLeaderEpochRequest]
FREQUENT_APIS = [
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    OffsetCommitRequest,
    FetchRequest,
    MetadataRequest,
]
SETTLED_WITHIN_MS = 120_000


class Story:
    """Two members that read until everything is read, while one mishap comes."""

    def __init__(self, world, strategy):
        self.world = world
        self.strategy = strategy
        self.sent = set()
        self.read = {}
        self.shares = {}
        self.is_over = False

    def run(self):
        self.world.program(self.send, name="sender")
        for name in ("one", "two"):
            self.world.program(self.consume, name, name=name)
        self.world.run(timeout_ms=10 * SETTLED_WITHIN_MS)

    def send(self):
        with KafkaProducer(**self.world.client()) as producer:
            for number in range(40):
                futures = [
                    producer.send("orders", b"%d" % number, partition=one.partition)
                    for one in PARTITIONS
                ]
                self.sent |= {(at, future.get(60).offset) for at, future in enumerate(futures)}
                self.world.sleep(250)

    def consume(self, name):
        if name == "two":
            self.world.sleep(3_000)  # so that the first one has to rebalance
        consumer = KafkaConsumer(
            "orders",
            **self.world.client(name),
            group_id="g",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=1_000,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=500,
            request_timeout_ms=5_000,
            bootstrap_timeout_ms=60_000,
            partition_assignment_strategy=[self.strategy],
        )
        end_ms = self.world.clock.monotonic_ms() + SETTLED_WITHIN_MS
        while not self.is_over:
            late = f"{self.shares} {len(self.sent)} {len(self.read)} {consumer.health()}"
            assert self.world.clock.monotonic_ms() < end_ms, late
            for partition, records in consumer.poll(timeout_ms=200).items():
                for record in records:
                    where = (partition.partition, record.offset)
                    self.read[where] = self.read.get(where, 0) + 1
            self.shares[name] = len(consumer.assignment())
            is_all = len(self.sent) == 160 and set(self.read) == self.sent
            if is_all and self.shares == {"one": 2, "two": 2}:
                self.is_over = True
        consumer.close()


def committed(world):
    """What the group has committed in the end, by partition number."""
    found = {}

    def look():
        with KafkaConsumer(**world.client(), group_id="g") as consumer:
            for one in PARTITIONS:
                found[one.partition] = consumer.committed(one)

    world.program(look)
    world.run()
    return found


def run(arrange, strategy, seed=3):
    config = {"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 0}
    with Simulation(seed, CALM, broker_config=config) as world:
        world.broker.create_topic("orders", 4)
        mishap = arrange(world)
        Story(world, strategy).run()
        assert mishap()
        assert committed(world) == dict.fromkeys(range(4), 40)


@pytest.mark.parametrize(
    ("api", "nth"),
    [(api, 1) for api in (*GROUP_APIS, *OTHER_APIS)] + [(api, 3) for api in FREQUENT_APIS],
)
@pytest.mark.parametrize(("after", "strategy"), [(False, "range"), (True, "cooperative-sticky")])
def test_a_connection_that_is_cut(api, nth, after, strategy):
    def arrange(world):
        fault = world.broker.faults.drop(api, Nth(nth), after=after)
        return lambda: fault.hits == 1

    run(arrange, strategy)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize(
    "api", [JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, OffsetFetchRequest]
)
def test_a_coordinator_that_moves(api, strategy):
    def arrange(world):
        fault = world.broker.faults.fail(api, NotCoordinatorError, Nth(2))
        return lambda: fault.hits == 1

    run(arrange, strategy)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("api", [*GROUP_APIS[1:-1], FetchRequest])
def test_a_broker_that_restarts(api, strategy):
    """It is killed while the answer to such a request is on its way."""

    def arrange(world):
        fault = world.broker.faults.delay(api, 300, Nth(2))
        restarts = []

        def restart():
            world.run_until(lambda: fault.hits, 600_000)
            world.sleep(100)
            world.broker.kill()
            world.sleep(2_000)
            world.broker.start()
            restarts.append(fault.hits)

        world.program(restart)
        return lambda: restarts == [1]

    run(arrange, strategy)
