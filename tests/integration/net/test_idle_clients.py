"""An idle client sleeps: ten minutes of simulated time, and how often its loop turned in them."""

import re
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import pytest

from broker_stub.testing.simulation import CALM, Simulation
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.net.io_thread import IoThread

Client: TypeAlias = KafkaProducer | KafkaConsumer | KafkaAdminClient

SETTLED_MS = 5_000
IDLE_MS = 600_000
METADATA = {"Metadata": 2}  # metadata.max.age.ms is five minutes
# The loop turns when it sends, when the answer comes, and once more to see that this was all; and
# now and then for something that falls due but is no request: a window of the producer's metrics
# ends twice a minute, say.
TURNS_A_REQUEST = 3
OTHER_TURNS = 60


def producer(world: Simulation) -> Client:
    client = KafkaProducer(**world.client())
    client.send("orders", b"book").get(timeout=10)
    return client


def admin(world: Simulation) -> Client:
    client = KafkaAdminClient(**world.client())
    client.list_topics()
    return client


def reader(world: Simulation) -> KafkaConsumer:
    client = KafkaConsumer(**world.client(), fetch_max_wait_ms=500)
    client.assign([TopicPartition("orders", 0)])
    client.poll(timeout_ms=1_000)
    return client


def paused_reader(world: Simulation) -> Client:
    client = reader(world)
    client.pause(TopicPartition("orders", 0))
    return client


def member(world: Simulation) -> KafkaConsumer:
    client = KafkaConsumer(
        "orders",
        **world.client(),
        group_id="billing",
        heartbeat_interval_ms=3_000,
        max_poll_interval_ms=2 * IDLE_MS,
    )
    while not client.assignment():
        client.poll(timeout_ms=100)
    return client


def paused_member(world: Simulation) -> Client:
    client = member(world)
    client.pause(*client.assignment())
    return client


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (producer, METADATA),
        (admin, METADATA),
        # A fetch waits at the broker for half a second: two of them in each second, at most.
        # Every 6 s a silent partition's end is looked up: it may be left out of a fetch session.
        (reader, {**METADATA, "Fetch": 1_200, "ListOffsets": 100}),
        (paused_reader, METADATA),
        (member, {**METADATA, "Fetch": 1_200, "Heartbeat": 200, "ListOffsets": 100}),
        (paused_member, {**METADATA, "Heartbeat": 200}),
    ],
)
def test_an_idle_client_wakes_only_for_its_requests(
    make: Callable[[Simulation], Client],
    expected: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = count_turns(monkeypatch)
    with Simulation(1, CALM) as world:
        world.broker.create_topic("orders")
        idle = world.program(stay_idle, world, make, turns)
        world.run()
    turned, sent = idle.result
    assert sent.keys() == expected.keys()
    for api, count in expected.items():
        assert 0.99 * count <= sent[api] + 1 <= count + 2, (api, sent)
    assert turned <= TURNS_A_REQUEST * sent.total() + OTHER_TURNS


def count_turns(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    turns: Counter[str] = Counter()
    run_once = IoThread.run_once

    def counted(loop: IoThread) -> None:
        turns["all"] += 1
        run_once(loop)

    monkeypatch.setattr(IoThread, "run_once", counted)
    return turns


def stay_idle(
    world: Simulation, make: Callable[[Simulation], Client], turns: Counter[str]
) -> tuple[int, Counter[str]]:
    """How often the loop turned, and which requests came, while a client had nothing to do."""
    client = make(world)
    world.sleep(SETTLED_MS)
    events, before = len(world.trace), turns["all"]
    world.sleep(IDLE_MS)
    turned = turns["all"] - before
    lines = world.trace.lines(len(world.trace) - events)
    sent = Counter(
        found[1] for line in lines if (found := re.search(r" (\w+)Request v.* comes", line))
    )
    client.close()
    return turned, sent
