"""The same raw group requests to our broker and to Apache Kafka: the same answers."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from broker_stub import Broker
from tests.interop.group_script import TOPIC, GroupScript
from tests.support.broker_load import create_topic
from tests.support.subscriptions import subscription

OTHER = "scripted-2"

Answers = dict[str, Any]


@pytest.fixture(scope="module")
def ours() -> Iterator[Broker]:
    with Broker(config={"group.min.session.timeout.ms": 500}) as broker:
        for topic in (TOPIC, OTHER):
            broker.create_topic(topic, partitions=2)
        yield broker


@pytest.fixture(scope="module")
def theirs(apache: Any) -> Any:
    for topic in (TOPIC, OTHER):
        create_topic(apache.bootstrap_servers, topic, 2)
    return apache


def pair(script: GroupScript) -> None:
    """A stable group of `a`, which leads, and `b`: generation 2."""
    script.join("a")
    script.sync("a", 1, assignments={"a": b"all"})
    script.start_join("b")
    assert script.joined("b")["error"] == 79
    script.start_join("b")
    while script.heartbeat("a", 1) != 27:
        script.pause(0.01)
    script.join("a")
    script.joined("b")
    script.start_sync("b", 2)
    script.sync("a", 2, assignments={"a": b"half", "b": b"other"})
    script.synced("b")


def strangers(script: GroupScript) -> Answers:
    script.ids["x"] = "nobody"
    return {
        "join": script.join("x"),
        "join short session": script.join("y", session_timeout_ms=100),
        "join long session": script.join("y", session_timeout_ms=2_000_000_000),
        "join no group": script.join("y", group_id=""),
        "sync": script.sync("x", 1),
        "sync no group": script.sync("x", 1, group_id=""),
        "heartbeat": script.heartbeat("x", 1),
        "heartbeat no group": script.heartbeat("x", 1, group_id=""),
        "leave 2": script.leave("x", version=2),
        "leave 5": script.leave("x"),
        "leave instance": script.leave(instances=("i",)),
        "commit 8": script.commit("x", 1, version=8),
        "commit 9": script.commit("x", 1),
        "describe 5": script.describe(5),
        "describe 6": script.describe(),
        "describe no group": script.describe(group_id=""),
        "delete no group": script.delete(""),
        "delete offsets no group": script.delete_offsets((TOPIC, 0), group_id=""),
        # Last: a refused join leaves an empty group behind in Apache Kafka, and none in ours.
        "join no protocols": script.join("y", assignors=()),
        "join no type": script.join("y", protocol_type=""),
    }


def simple_group(script: GroupScript) -> Answers:
    return {
        "delete offsets before": script.delete_offsets((TOPIC, 0), group_id="never-was"),
        "delete before": script.delete("never-was"),
        "commit": script.commit("", -1),
        "commit unknown topic": script.commit("", -1, topic="missing"),
        "commit unknown partition": script.commit("", -1, partition=7),
        "longest metadata": script.commit("", -1, partition=1, metadata="ä" * 4096),
        "too long metadata": script.commit("", -1, metadata="😀" * 2049),
        "committed": script.committed(),
        "describe": script.describe(),
        "listed": script.listed(),
        "listed Empty": script.listed(states_filter=["empty"], types_filter=["Classic"]),
        "listed Stable": script.listed(states_filter=["Stable"]),
        "delete offsets": script.delete_offsets((TOPIC, 0), (OTHER, 0), (TOPIC, 9), ("no", 0)),
        "left": script.committed(),
        "delete": script.delete(),
        "deleted": script.describe(),
        "delete again": script.delete(),
    }


def lifecycle(script: GroupScript) -> Answers:
    answers: Answers = {"join a": script.join("a")}
    answers["described completing"] = script.describe()
    answers["commit too early"] = script.commit("a", 1)
    answers["heartbeat completing"] = script.heartbeat("a", 1)
    answers["sync wrong protocol"] = script.sync("a", 1, protocol_name="roundrobin")
    answers["sync wrong type"] = script.sync("a", 1, protocol_type="connect")
    answers["sync old generation"] = script.sync("a", 0)
    answers["sync a"] = script.sync("a", 1, assignments={"a": b"all"})
    answers["sync again"] = script.sync("a", 1)
    answers["described stable"] = script.describe()
    answers["listed"] = script.listed(states_filter=["STABLE"])
    script.start_join("b")
    answers["b gets an id"] = script.joined("b")
    script.start_join("b")
    while (code := script.heartbeat("a", 1)) == 0:
        script.pause(0.01)
    answers["heartbeat preparing"] = code
    answers["described preparing"] = script.describe()
    answers["sync preparing"] = script.sync("a", 1)
    answers["commit preparing"] = script.commit("a", 1, offset=7)
    answers["a rejoins"] = script.join("a")
    answers["b joined"] = script.joined("b")
    answers["a missed the answer"] = script.join("a")
    script.start_sync("b", 2)
    answers["sync leader"] = script.sync("a", 2, assignments={"a": b"half"})
    answers["sync follower without an assignment"] = script.synced("b")
    answers["follower joins again"] = script.join("b")
    answers["heartbeat old"] = script.heartbeat("b", 1)
    answers["heartbeat unknown instance"] = script.heartbeat("b", 2, group_instance_id="i")
    answers["sync unknown instance"] = script.sync("b", 2, group_instance_id="i")
    answers["commit unknown instance"] = script.commit("b", 2, group_instance_id="i")
    answers["join unknown instance"] = script.join("b", group_instance_id="i")
    answers["commit without a member"] = script.commit("x", -1)
    answers["other type"] = script.join("c", protocol_type="connect")
    answers["other assignor"] = script.join("c", assignors=("sticky",))
    answers["swapped assignor"] = script.join("b", assignors=("roundrobin",))
    answers["delete"] = script.delete()
    answers["leave together"] = script.leave("a", "b", "stranger")
    answers["empty"] = script.describe()
    answers["heartbeat of who left"] = script.heartbeat("a", 2)
    answers["sync of who left"] = script.sync("a", 2)
    answers["commit of who left"] = script.commit("a", 2)
    script.ids.clear()
    answers["the next generation"] = script.join("d", assignors=("sticky",), version=3)
    return answers


def static_members(script: GroupScript) -> Answers:
    answers: Answers = {"join": script.join("old", group_instance_id="i")}
    script.sync("old", 1, assignments={"old": b"all"}, group_instance_id="i")
    answers["replaced"] = script.join("new", group_instance_id="i")
    answers["keeps its assignment"] = script.sync("new", 1, group_instance_id="i")
    answers["heartbeat fenced"] = script.heartbeat("old", 1, group_instance_id="i")
    answers["sync fenced"] = script.sync("old", 1, group_instance_id="i")
    answers["commit fenced"] = script.commit("old", 1, group_instance_id="i")
    answers["join fenced"] = script.join("old", group_instance_id="i")
    answers["heartbeat without the instance"] = script.heartbeat("old", 1)
    answers["described"] = script.describe()
    answers["replaced, old client"] = script.join("third", version=8, group_instance_id="i")
    answers["other metadata"] = script.join(
        "fourth", group_instance_id="i", metadata=subscription(OTHER)
    )
    answers["leave by instance"] = script.leave(instances=("i", "nobody"))
    answers["described empty"] = script.describe()
    return answers


def bad_subscriptions(script: GroupScript) -> Answers:
    # Cut short. Other bytes, as b"no subscription", leave Apache Kafka 4.3's group stuck.
    answers: Answers = {"join": script.join("a", metadata=b"\0\0\0")}
    answers["sync"] = script.sync("a", 1, assignments={"a": b"\0"})
    answers["commit"] = script.commit("a", 1)
    answers["delete offsets"] = script.delete_offsets((TOPIC, 0), (OTHER, 0))
    answers["described"] = script.describe()
    return answers


def offset_deletion(script: GroupScript) -> Answers:
    script.join("a")
    script.sync("a", 1, assignments={"a": b"all"})
    script.commit("a", 1)
    script.commit("a", 1, topic=OTHER)
    return {
        "delete": script.delete_offsets((TOPIC, 0), (OTHER, 0), (OTHER, 1)),
        "left": script.committed(),
    }


def other_kinds(script: GroupScript) -> Answers:
    answers: Answers = {"join": script.join("a", protocol_type="connect", metadata=b"worker")}
    answers["sync"] = script.sync("a", 1, protocol_type="connect", assignments={"a": b"tasks"})
    answers["commit"] = script.commit("a", 1)
    answers["delete offsets"] = script.delete_offsets((TOPIC, 0))
    answers["described"] = script.describe()
    answers["listed"] = script.listed()
    answers["leave"] = script.leave("a")
    answers["delete offsets of the empty group"] = script.delete_offsets((TOPIC, 0))
    return answers


def unsynced(script: GroupScript) -> Answers:
    """`b` joins, sends heartbeats, and never syncs."""
    terms = {"rebalance_timeout_ms": 1500}
    script.join("a", **terms)
    script.sync("a", 1, assignments={"a": b"all"})
    script.start_join("b", **terms)
    script.joined("b")
    script.start_join("b", **terms)
    while script.heartbeat("a", 1) != 27:
        script.pause(0.01)
    script.join("a", **terms)
    script.joined("b")
    answers: Answers = {"sync": script.sync("a", 2, assignments={"a": b"half", "b": b"other"})}
    answers["b is in"] = script.heartbeat("b", 2)
    while script.heartbeat("a", 2) == 0 and script.heartbeat("b", 2) == 0:
        script.pause(0.05)
    answers["b is out"] = script.heartbeat("b", 2)
    answers["a rejoins"] = script.join("a", **terms)
    return answers


def silent_member(script: GroupScript) -> Answers:
    """`b` stops sending heartbeats, and loses its session."""
    pair(script)
    answers: Answers = {"rejoin": None}
    script.start_join("b", session_timeout_ms=700, metadata=subscription(OTHER))
    while script.heartbeat("a", 2) != 27:
        script.pause(0.01)
    script.join("a")
    script.joined("b")
    script.start_sync("b", 3)
    script.sync("a", 3, assignments={"a": b"half"})
    script.synced("b")
    while script.heartbeat("a", 3) == 0:
        script.pause(0.05)
    answers["b is out"] = script.heartbeat("b", 3)
    answers["rejoin"] = script.join("a")
    return answers


def mixed_commits(script: GroupScript) -> Answers:
    """Topics that do not exist, strangers, and the same topic several times."""
    mixed = ((TOPIC, 0), (TOPIC, 9), ("missing", 0))
    pieces = ((TOPIC, [0, 0]), (OTHER, [0]), (TOPIC, [1]))
    return {
        "no group, unknown topic": script.commit_several("", 3, ("missing", 0)),
        "no group, mixed": script.commit_several("", 3, *mixed),
        "simple, mixed": script.commit_several("", -1, *mixed),
        "negative generation": script.commit_several("", -7, (TOPIC, 0)),
        "generation of an empty group": script.commit_several("", 0, *mixed),
        "stranger, long metadata": script.commit_several("", 0, (TOPIC, 0), metadata="m" * 5000),
        "same topic twice": script.commit_several("", -1, (TOPIC, 0), (TOPIC, 1)),
        "fetched in pieces": script.fetch_offsets(*pieces),
        "delete twice": script.delete_several(script.group_id, "never-was", script.group_id),
    }


def nameless_syncs(script: GroupScript) -> Answers:
    answers: Answers = {"join": script.join("a")}
    answers["no type"] = script.sync("a", 1, protocol_type=None)
    answers["no name"] = script.sync("a", 1, protocol_name=None)
    answers["a stranger's"] = script.sync("x", 1, protocol_name=None)
    answers["without a group"] = script.sync("x", 1, protocol_name=None, group_id="")
    answers["version 4"] = script.sync("a", 1, version=4, assignments={"a": b"all"})
    return answers


def changing_leaders(script: GroupScript) -> Answers:
    """A parked sync and a parked join see the leader leave."""
    pair(script)
    script.start_join("b", metadata=subscription(OTHER))
    while script.heartbeat("a", 2) != 27:
        script.pause(0.01)
    script.join("a")
    script.joined("b")
    script.start_sync("b", 3)
    script.pause(0.05)
    answers: Answers = {"leave": script.leave("a"), "parked sync": script.synced("b")}
    answers["b alone"] = script.join("b", metadata=subscription(OTHER))
    answers["changed while completing"] = script.join("b")
    answers["sync stale"] = script.sync("b", 4)
    answers["sync"] = script.sync("b", 5, assignments={"b": b"all"})
    script.start_join("c", group_instance_id="i")
    while script.heartbeat("b", 5) != 27:
        script.pause(0.01)
    answers["leave while it joins"] = script.leave(instances=("i",))
    answers["parked join"] = script.joined("c")
    return answers


SCRIPTS: tuple[Callable[[GroupScript], Answers], ...] = (
    strangers,
    simple_group,
    lifecycle,
    static_members,
    bad_subscriptions,
    offset_deletion,
    other_kinds,
    unsynced,
    silent_member,
    mixed_commits,
    nameless_syncs,
    changing_leaders,
)


@pytest.mark.parametrize("play", SCRIPTS, ids=lambda one: one.__name__)
def test_the_same_requests_get_the_same_answers(ours, theirs, play):
    answers = []
    for port in (theirs.port, ours.port):
        with GroupScript(port, f"group-{play.__name__}") as script:
            answers.append(play(script))
    expected, given = answers
    assert given == expected
