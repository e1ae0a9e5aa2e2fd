"""A history of a consumer group whose members stall, leave and come back while the broker crashes.

Every acknowledged record is read by a member; in a generation, a partition has one owner; every
wait in the coordinator has a deadline; and once all members have left, the group is empty.
"""

from contextlib import suppress

from broker_stub.coordinator.groups.classic_group import ClassicGroup
from broker_stub.coordinator.groups.group_state import GroupState
from broker_stub.node import Node
from broker_stub.testing.simulation import Simulation
from broker_stub.testing.simulation.programs import Program
from pyclient import KafkaConsumer, KafkaProducer
from pyclient.errors import KafkaError, NoBrokersAvailable
from pyclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.sync_group import SyncGroupRequest

TOPIC = "orders"
GROUP = "readers"
PARTITIONS = 4
MEMBERS = 3
RECORDS = 40
SESSION_MS = 6_000
REBALANCE_MS = 20_000
LONGEST_WAIT_MS = 60_000
LIMIT_MS = 1_200_000
SETTLED_MS = 120_000


class Owners:
    """Looks at the coordinator after everything that the broker does."""

    def __init__(self) -> None:
        self.generations = 0
        self._seen: tuple[int, GroupState] | None = None

    def watch(self, node: Node) -> None:
        """Check the group, if there is one."""
        if "coordinator" not in node.__dict__:
            return
        for group in node.coordinator.groups():
            self._check_deadlines(node, group)
            seen = (group.generation_id, group.state)
            if seen != self._seen and group.state is GroupState.STABLE:
                self.generations += 1
                self._check_owners(group)
            self._seen = seen

    def _check_deadlines(self, node: Node, group: ClassicGroup) -> None:
        for member in group.roster:
            assert member.session is not None, f"{member.member_id} has no session"
            assert member.session.pending, f"{member.member_id} never expires"
        if group.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE):
            deadline_ms = group.rebalance_deadline_ms
            assert deadline_ms is not None, f"{group.state} without a deadline"
            assert deadline_ms <= node.timers.now_ms() + LONGEST_WAIT_MS

    def _check_owners(self, group: ClassicGroup) -> None:
        owned = [one for member in group.roster for one in _partitions(member.assignment)]
        assert len(owned) == len(set(owned)), f"two owners in generation {group.generation_id}"


def _partitions(assignment: bytes) -> list[tuple[str, int]]:
    if not assignment:
        return []
    message, _ = ConsumerProtocolAssignment.decode_from(memoryview(assignment), 2, 0)
    return [
        (topic.topic, index) for topic in message.assigned_partitions for index in topic.partitions
    ]


def groups_history(seed: int) -> Simulation:
    """Run the history of a seed, and check it; the world, to look at its trace."""
    config = {"group.min.session.timeout.ms": 1_000, "offsets.topic.num.partitions": 2}
    with Simulation(seed, broker_config=config) as world:
        owners = Owners()
        world.broker.watch(owners.watch)
        world.broker.create_topic(TOPIC, PARTITIONS, {"flush.messages": 1})
        _order_faults(world)
        acked: list[bytes] = []
        read: set[bytes] = set()
        sender = world.program(send, world, acked, name="sender")
        for number in range(MEMBERS):
            world.program(consume, world, number, sender, acked, read, name=f"member-{number}")
        world.run()
        assert acked, "no record was acknowledged"
        missing = set(acked) - read
        assert not missing, f"never read: {sorted(missing)}"
        assert owners.generations, "the group never had a generation"
        world.run_for(SETTLED_MS)
        for group in world.broker.node.coordinator.groups():
            assert group.state is GroupState.EMPTY, f"{group.group_id} is {group.state}"
    return world


def _order_faults(world: Simulation) -> None:
    """Some histories lose a SyncGroup's response, or hold a member's answers back."""
    chance = world.chance("faults of the group")
    faults = world.broker.faults
    if chance.happens(0.5):
        faults.drop(SyncGroupRequest, after=True, group=GROUP)
    if chance.happens(0.3):
        faults.delay(JoinGroupRequest, chance.uniform(0, 2 * SESSION_MS), client_id="member-1")
    if chance.happens(0.3):
        faults.drop(HeartbeatRequest, group=GROUP)


def send(world: Simulation, acked: list[bytes]) -> None:
    """A program that sends records, and notes what was acknowledged."""
    _send_records(world, acked)
    if not acked:
        # The broker was never up for long enough. Without a record the members would end at once,
        # and a group that cannot form would pass.
        world.calm()
        _send_records(world, acked)


def _send_records(world: Simulation, acked: list[bytes]) -> None:
    chance = world.chance("records")
    with (
        suppress(NoBrokersAvailable),
        KafkaProducer(
            **world.client(),
            bootstrap_timeout_ms=60_000,
            request_timeout_ms=1_000,
            delivery_timeout_ms=20_000,
            max_block_ms=5_000,
            linger_ms=0,
        ) as producer,
    ):
        for number in range(RECORDS):
            value = b"%d" % number
            with suppress(KafkaError):
                producer.send(TOPIC, value, partition=number % PARTITIONS).get(60)
                acked.append(value)
            world.sleep(chance.choice((0, 100, 2_000)))


def consume(
    world: Simulation, number: int, sender: Program, acked: list[bytes], read: set[bytes]
) -> None:
    """A member that stalls and leaves now and then, until everything was read."""
    chance = world.chance(f"member {number}")
    end_ms = world.clock.monotonic_ms() + LIMIT_MS

    def is_over() -> bool:
        now_ms = world.clock.monotonic_ms()
        if now_ms > end_ms:
            world.calm()  # where too much goes wrong, nobody ever gets to read anything
        return now_ms > 2 * end_ms or (sender.is_done and set(acked) <= read)

    while not is_over():
        with (
            suppress(KafkaError),
            KafkaConsumer(
                TOPIC,
                **world.client(f"member-{number}"),
                group_id=GROUP,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=1_000,
                max_poll_interval_ms=REBALANCE_MS,
                request_timeout_ms=30_000,
                bootstrap_timeout_ms=60_000,
            ) as consumer,
        ):
            while not is_over() and not chance.happens(0.02):
                found = consumer.poll(timeout_ms=1_000)
                read.update(one.value for many in found.values() for one in many)
                if found:
                    with suppress(KafkaError):
                        consumer.commit()
                if chance.happens(0.05):
                    world.sleep(chance.uniform(0, 2 * SESSION_MS))
        world.sleep(chance.uniform(0, 2_000))
