"""A history of the admin client: several programs create, grow, configure and delete topics.

All mishaps are on; afterwards `TopicChecker` judges.
"""

import re
from functools import partial

from broker_stub.testing.simulation import Simulation
from pyclient.admin import ConfigResource, KafkaAdminClient, NewTopic
from pyclient.errors import KafkaError, NoBrokersAvailable, for_code
from tests.simulation.topic_checker import COMPACT, MARK, POLICY, Call, TopicChecker
from tests.simulation.topic_lives import PAIR

PROGRAMS = 3
CALLS = 16
NAMES = ("orders", "payments", "returns")
TIMEOUT_MS = 8_000
# A call's last wait allows for a loop that is held up; then threads hesitate.
MARGIN_MS = 1_000
KINDS = (
    *("create", "create", "create", "delete", "delete", "grow", "grow", "describe"),
    *("alter", "alter", "replace", "reset", "append", "subtract", "inspect"),
)
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
    """A new client, as soon as one can bootstrap."""
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
    if call.kind == "create":
        topic = NewTopic(
            call.name, call.partitions, replication_factor=1, topic_configs={MARK: call.mark}
        )
        admin.create_topics([topic], timeout_ms=call.timeout_ms)
    elif call.kind == "delete":
        admin.delete_topics([call.name], timeout_ms=call.timeout_ms)
    elif call.kind == "grow":
        admin.create_partitions({call.name: call.partitions}, timeout_ms=call.timeout_ms)
    elif call.kind == "describe":
        (described,) = admin.describe_topics([call.name])
        call.seen = len(described["partitions"]) or None
    elif call.kind == "inspect":
        found = admin.describe_configs([ConfigResource("topic", call.name)])
        entries = found["topic"][call.name]
        call.seen = {key: entry["value"] for key, entry in entries.items()}
    else:
        alter(admin, call)


def alter(admin: KafkaAdminClient, call: Call) -> None:
    """Make a call that changes the topic's configuration.

    Raises:
        KafkaError: what the result says instead of `OK`.
    """
    if call.kind == "reset":
        results = admin.reset_configs([ConfigResource("topic", call.name, PAIR)])
    elif call.kind in ("append", "subtract"):
        change = {POLICY: (call.kind, COMPACT)}
        results = admin.alter_configs([ConfigResource("topic", call.name, change)])
    else:
        resource = ConfigResource("topic", call.name, dict.fromkeys(PAIR, call.mark))
        incremental = False if call.kind == "replace" else None
        results = admin.alter_configs([resource], incremental=incremental)
    result = results["topic"][call.name]
    if result != "OK":
        code = re.search(r", error (-?\d+)\)$", result)
        assert code is not None, result
        raise for_code(int(code[1]))(result)


def check_nothing_is_forgotten(world: Simulation, checker: TopicChecker) -> None:
    """After a last power loss the broker has the topics that it had, and nothing else."""
    before = checker.state()
    world.broker.lose_power()
    world.broker.start()
    assert checker.state() == before
    logs = {(key.topic, key.partition) for key in world.broker.node.logs.logs()}
    known = {(name, index) for name, topic in before.items() for index in range(topic.partitions)}
    assert {key for key in logs if not key[0].startswith("__")} <= known
