"""`pyclient groups` against the broker."""

from collections.abc import Iterator

import pytest

from broker_stub import Broker
from pyclient import KafkaConsumer
from tests.support.command_line import Shell


@pytest.fixture
def group(shell: Shell) -> str:
    """A group without members that has read one of three records in each of two partitions."""
    shell("topics", "create", "orders", "-p", "2")
    for partition in "01":
        shell("produce", "orders", "-p", partition, stdin=b"a\n")
    assert shell("consume", "orders", "-g", "billing", "-B", "-e").code == 0
    for partition in "01":
        shell("produce", "orders", "-p", partition, stdin=b"b\nc\n")
    return "billing"


@pytest.fixture
def member(kafka_broker: Broker) -> Iterator[KafkaConsumer]:
    with KafkaConsumer(
        "orders", bootstrap_servers=kafka_broker.bootstrap_servers, group_id="billing",
        client_id="till-1", enable_auto_commit=False,
    ) as consumer:  # fmt: skip
        while not consumer.assignment():
            consumer.poll(timeout_ms=100)
        yield consumer


def committed(shell: Shell, group: str) -> list[int]:
    (described,) = shell("groups", "describe", group, "--json").json
    return [row["committed"] for row in described["partitions"]]


def test_groups_are_listed_by_state(shell: Shell, group: str) -> None:
    (listed,) = shell("groups", "list", "--json").json
    assert (listed["group"], listed["state"], listed["type"]) == (group, "Empty", "classic")
    assert shell("groups", "list", "--state", "stable").err == "There are no groups.\n"
    assert "billing  Empty" in shell("groups", "list", "--state", "empty").out
    wrong = shell("groups", "list", "--state", "busy")
    assert wrong.code == 2
    assert "'busy' is no GroupState" in wrong.err


def test_a_group_is_described_with_its_lag(shell: Shell, group: str) -> None:
    (described,) = shell("groups", "describe", group, "--json").json
    assert (described["state"], described["lag"], described["members"]) == ("Empty", 4, [])
    first, second = described["partitions"]
    assert (first["committed"], first["end"], first["lag"], first["client"]) == (1, 3, 2, None)
    assert second["time_lag_ms"] >= 0
    shown = shell("groups", "describe", group).out.splitlines()
    assert shown[5] == "Lag       4"
    assert shown[8].split()[:5] == ["orders", "0", "1", "3", "2"]


def test_members_and_what_they_read_are_shown(
    shell: Shell, group: str, member: KafkaConsumer
) -> None:
    (described,) = shell("groups", "describe", group, "--json").json
    (shown,) = described["members"]
    assert (shown["client"], shown["host"]) == ("till-1", "127.0.0.1")
    assert shown["partitions"] == [
        {"topic": "orders", "partition": 0},
        {"topic": "orders", "partition": 1},
    ]
    assert [row["client"] for row in described["partitions"]] == ["till-1", "till-1"]
    assert "orders:0 orders:1" in shell("groups", "describe", group, "--members").out


def test_a_watch_looks_again_and_again(shell: Shell, group: str) -> None:
    watched = shell("groups", "watch", group, "-i", "1ms", "-n", "3", "--json")
    assert [line.count('"lag": 4') for line in watched.out.splitlines()] == [1, 1, 1]
    assert shell("groups", "watch", group, "-i", "1ms", "-n", "2").out.count("TOPIC") == 2


@pytest.mark.parametrize(
    ("arguments", "moved"),
    [
        (("--to-earliest",), [0, 0]),
        (("--to-latest", "--topic", "orders:1"), [1, 3]),
        (("--to-offset", "2", "--topic", "orders"), [2, 2]),
        (("--shift-by", "-1"), [0, 0]),
        (("--to-datetime", "2200-01-01"), [3, 3]),
        (("--by-duration", "1h"), [0, 0]),
    ],
)
def test_offsets_are_moved_after_a_dry_run(
    shell: Shell, group: str, arguments: tuple[str, ...], moved: list[int]
) -> None:
    dry = shell("groups", "reset-offsets", group, *arguments, "--dry-run", "--json")
    assert dry.code == 0
    assert committed(shell, group) == [1, 1]
    done = shell("groups", "reset-offsets", group, *arguments)
    assert done.code == 0
    assert f"offsets of {group} moved" in done.err
    assert committed(shell, group) == moved
    planned = {row["partition"]: row["to"] for row in dry.json}
    assert all(moved[partition] == offset for partition, offset in planned.items())


def test_a_group_with_members_stays_as_it_is(
    shell: Shell, group: str, member: KafkaConsumer
) -> None:
    for arguments in (
        ("reset-offsets", group, "--to-earliest"),
        ("delete", group),
        ("delete-offsets", group, "--topic", "orders"),
    ):
        refused = shell("groups", *arguments)
        assert refused.code == 1, arguments
        assert "Hint: stop the" in refused.err
        assert "Traceback" not in refused.err
    assert committed(shell, group) == [1, 1]


def test_offsets_and_groups_are_deleted(shell: Shell, group: str) -> None:
    done = shell("groups", "delete-offsets", group, "--topic", "orders:0", "--json")
    assert done.json == [{"topic": "orders", "partition": 0}]
    assert committed(shell, group) == [1]
    assert shell("groups", "delete", group).code == 0
    assert shell("groups", "list", "--json").json == []


def test_mistakes_are_one_line(shell: Shell, group: str) -> None:
    for arguments, text, code in (
        (("describe", "nope"), "group 'nope' does not exist", 4),
        (("delete", "nope"), "group 'nope' cannot be deleted", 4),
        (("watch", "nope"), "group 'nope' does not exist", 4),
        (("reset-offsets", "nope", "--to-latest"), "has no committed offsets", 4),
        (("delete-offsets", group, "-t", "bills"), "has no offsets of these partitions", 4),
        (("reset-offsets", group), "Give exactly one of --to-earliest", 2),
        (("reset-offsets", group, "--to-latest", "--shift-by", "1"), "exactly one", 2),
        (("reset-offsets", group, "--to-latest", "-t", "orders:7"), "no partition 7", 2),
        (("reset-offsets", "new", "--shift-by", "1", "-t", "orders"), "no committed offset", 2),
    ):
        done = shell("groups", *arguments)
        assert done.code == code, done
        assert text in done.err
        assert done.err.count("\n") == 1
