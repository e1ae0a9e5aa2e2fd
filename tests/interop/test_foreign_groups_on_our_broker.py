"""Groups of two, by clients that share no code with us."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from broker_stub import Broker
from tests.interop.foreign_clients import Confluent, Record
from tests.interop.foreign_members import MEMBERS, Member

PARTITIONS = 4
WAIT_SECONDS = 60
LOOK_SECONDS = 0.02


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"group.initial.rebalance.delay.ms": 0}) as running:
        yield running


def wait_until(condition: Callable[[], bool], *members: Member) -> None:
    for _ in range(int(WAIT_SECONDS / LOOK_SECONDS)):
        for member in members:
            if member.failure is not None:
                raise member.failure
        if condition():
            return
        Event().wait(LOOK_SECONDS)
    raise AssertionError(f"it never came to that: {[vars(member) for member in members]}")


def produce(broker: Broker, topic: str, *values: bytes) -> None:
    records = [
        Record(index % PARTITIONS, None, value, (), 1_700_000_000_000)
        for index, value in enumerate(values)
    ]
    Confluent().produce(broker.bootstrap_servers, topic, records)


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)
def test_two_members_share_the_partitions_and_a_third_goes_on_from_their_commits(broker, kind):
    topic = group = f"shared-{kind.__name__}"
    broker.create_topic(topic, partitions=PARTITIONS)
    everything = frozenset(range(PARTITIONS))
    sent = {b"value-%d" % index for index in range(80)}

    def member() -> Member:
        return kind(broker.bootstrap_servers, group, topic)

    with member() as first, member() as second:
        wait_until(
            lambda: (
                len(first.assigned) == len(second.assigned) == 2
                and first.assigned | second.assigned == everything
            ),
            first,
            second,
        )
        produce(broker, topic, *sorted(sent))
        wait_until(lambda: len(first.values) + len(second.values) >= len(sent), first, second)
        assert len(first.values) == len(second.values) == 40
        assert set(first.values) | set(second.values) == sent
        second.leave()
        wait_until(lambda: first.assigned == everything, first)
    broker.restart()
    with member() as third:
        wait_until(lambda: third.assigned == everything, third)
        produce(broker, topic, b"new")
        wait_until(lambda: bool(third.values), third)
    assert third.values == [b"new"]
