"""Groups of two, by clients that share no code with us, on `python -m broker_stub`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGTERM
from threading import Event

import pytest

from tests.interop.confluent_client import Confluent
from tests.interop.foreign_members import MEMBERS, Member
from tests.interop.foreign_records import Record
from tests.support.broker_load import create_topic
from tests.support.server_process import ServerProcess

PARTITIONS = 4
EVERYTHING = frozenset(range(PARTITIONS))
WAIT_SECONDS = 60
LOOK_SECONDS = 0.02

every_kind = pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--data-dir", tmp_path) as running:
        create_topic(running.bootstrap_servers, "orders", PARTITIONS)
        yield running


def stop(server: ServerProcess) -> None:
    assert server.signal(SIGTERM) == 0


def wait_until(condition: Callable[[], bool], *members: Member) -> None:
    for _ in range(int(WAIT_SECONDS / LOOK_SECONDS)):
        for member in members:
            if member.failure is not None:
                raise member.failure
        if condition():
            return
        Event().wait(LOOK_SECONDS)
    raise AssertionError(f"it never came to that: {[vars(member) for member in members]}")


def wait_until_shared(first: Member, second: Member) -> None:
    """Wait until each member owns its half and nothing else."""

    def shared() -> bool:
        mine, yours = first.assigned, second.assigned
        return len(mine) == len(yours) == PARTITIONS // 2 and mine | yours == EVERYTHING

    wait_until(shared, first, second)


def produce(server: ServerProcess, count: int, start: int = 0) -> list[bytes]:
    """Values from number `start` on, evenly over the partitions."""
    values = [b"value-%03d" % (start + index) for index in range(count)]
    records = [
        Record(index % PARTITIONS, None, value, (), 1_700_000_000_000)
        for index, value in enumerate(values)
    ]
    Confluent().produce(server.bootstrap_servers, "orders", records)
    return values


@every_kind
def test_two_members_share_the_partitions_and_one_hands_its_over_when_it_leaves(server, kind):
    with kind(server.bootstrap_servers, "group", "orders") as first:
        with kind(server.bootstrap_servers, "group", "orders") as second:
            wait_until_shared(first, second)
            sent = produce(server, 80)
            wait_until(lambda: len(first.values) + len(second.values) >= 80, first, second)
            assert len(first.values) == len(second.values) == 40
            assert sorted(first.values + second.values) == sent
        wait_until(lambda: first.assigned == EVERYTHING, first)
        sent += produce(server, 8, start=80)
        wait_until(lambda: len(first.values) >= 48, first)
    assert sorted(first.values + second.values) == sent


@every_kind
@pytest.mark.parametrize("end", [stop, ServerProcess.kill], ids=["stop", "kill"])
def test_a_group_goes_on_where_it_was_when_the_broker_is_back(server, kind, end):
    with (
        kind(server.bootstrap_servers, "group", "orders") as first,
        kind(server.bootstrap_servers, "group", "orders") as second,
    ):
        wait_until_shared(first, second)
        sent = produce(server, 8)
        wait_until(lambda: len(first.values) + len(second.values) >= 8, first, second)
        end(server)
        server.start()
        sent += produce(server, 8, start=8)
        wait_until(lambda: len(first.values) + len(second.values) >= 16, first, second)
    assert sorted(first.values + second.values) == sent
    end(server)
    server.start()
    with kind(server.bootstrap_servers, "group", "orders") as third:
        wait_until(lambda: third.assigned == EVERYTHING, third)
        sent = produce(server, 4, start=16)
        wait_until(lambda: len(third.values) >= 4, third)
    assert sorted(third.values) == sent
