"""A history of the admin client: several programs create, grow, delete and look at topics.

Under all that can go wrong; afterwards `TopicChecker` judges.
"""

from __future__ import annotations

from functools import partial

from broker_stub.testing.simulation import Simulation
from pyclient.admin import KafkaAdminClient, NewTopic
from pyclient.errors import KafkaError, NoBrokersAvailable
from tests.simulation.topic_checker import MARK, Call, TopicChecker

PROGRAMS = 3
CALLS = 12
NAMES = ("orders", "payments", "returns")
TIMEOUT_MS = 8_000
# A call's last wait allows for a loop that is held up; then threads hesitate.
MARGIN_MS = 1_000
KINDS = ("create", "create", "create", "delete", "delete", "grow", "grow", "describe")
# Longer than any message is under way: what was given up long ago may still happen until then.
SETTLED_MS = 120_000


def admin_history(seed: int) -> Simulation:
    """Run the history of a seed, and check it; the world, to look at its trace."""
    with Simulation(seed) as world:
        margin_ms = MARGIN_MS + 4 * world.conditions.pause_ms
        checker = TopicChecker(world.clock.monotonic_ms, margin_ms)
        world.broker.watch(checker.watch)
        for number in range(PROGRAMS):
            world.program(manage_topics, world, checker, number, name=f"admin-{number}")
        world.run()
        world.run_for(SETTLED_MS)
        checker.check()
        check_nothing_is_forgotten(world, checker)
    return world


def manage_topics(world: Simulation, checker: TopicChecker, number: int) -> None:
    """One program: calls in a row, with pauses."""
    chance = world.chance(f"admin program {number}")
    admin = connect(world)
    for turn in range(CALLS):
        call = Call(
            program=f"admin-{number}",
            kind=chance.choice(KINDS),
            name=chance.choice(NAMES),
            began_ms=world.clock.monotonic_ms(),
            timeout_ms=TIMEOUT_MS,
            partitions=1 + chance.below(4),
            mark=str(1_000_000 * (1 + number) + turn),
        )
        try:
            perform(admin, call)
        except KafkaError as error:
            call.error = error
        call.ended_ms = world.clock.monotonic_ms()
        checker.calls.append(call)
        world.note("%s", str(call))
        world.sleep(chance.uniform(0, 300))
    admin.close()


def connect(world: Simulation) -> KafkaAdminClient:
    """A client, as soon as one can be had."""
    make = partial(
        KafkaAdminClient,
        bootstrap_timeout_ms=5_000,
        request_timeout_ms=2_000,
        default_api_timeout_ms=TIMEOUT_MS,
    )
    while True:
        try:
            return make(**world.client())
        except NoBrokersAvailable:
            world.sleep(100)


def perform(admin: KafkaAdminClient, call: Call) -> None:
    """Make the call."""
    if call.kind == "create":
        topic = NewTopic(
            call.name, call.partitions, replication_factor=1, topic_configs={MARK: call.mark}
        )
        admin.create_topics([topic], timeout_ms=call.timeout_ms)
    elif call.kind == "delete":
        admin.delete_topics([call.name], timeout_ms=call.timeout_ms)
    elif call.kind == "grow":
        admin.create_partitions({call.name: call.partitions}, timeout_ms=call.timeout_ms)
    else:
        (described,) = admin.describe_topics([call.name])
        call.seen = len(described["partitions"]) or None


def check_nothing_is_forgotten(world: Simulation, checker: TopicChecker) -> None:
    """After a last power loss the broker has the topics that it had, and nothing else."""
    before = checker.state()
    world.broker.lose_power()
    world.broker.start()
    assert checker.state() == before
    logs = {(key.topic, key.partition) for key in world.broker.node.logs.logs()}
    known = {(name, index) for name, count in before.items() for index in range(count)}
    assert {key for key in logs if not key[0].startswith("__")} <= known
