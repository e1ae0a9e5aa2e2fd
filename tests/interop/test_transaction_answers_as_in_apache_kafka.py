"""The same raw requests of transactional producers to our broker and to Apache Kafka: the same
answers, the same records in the log of transactions, the same producers in the partitions.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from broker_stub import Broker
from tests.integration.broker_stub.raw_client import RawClient
from tests.interop.group_script import GroupScript
from tests.support.broker_load import create_topic
from tests.support.transaction_script import OLD, Producer, TransactionScript

Answers = dict[str, Any]
Script = Callable[[TransactionScript], Answers]
LOADING = {14, 15, 16}
LOG_PARTITIONS = 5
CONFIG = {  # as the fixture of Apache Kafka has it
    "transaction.state.log.num.partitions": LOG_PARTITIONS,
    "offsets.topic.num.partitions": LOG_PARTITIONS,
}


@pytest.fixture(scope="module")
def ours() -> Iterator[Broker]:
    with Broker(config=CONFIG) as broker:
        yield broker


def play(port: int, name: str, script: Script) -> Answers:
    create_topic(f"127.0.0.1:{port}", name, 2)
    with RawClient(port) as client:
        played = TransactionScript(client.ask, name, name)
        wait_until(lambda: played.find() not in LOADING)
        wait_until(lambda: played.find(key_type=0, key="tellers") not in LOADING)
        wait_until(lambda: played.describe()["error"] not in LOADING)
        wait_until(lambda: isinstance(played.committed(0), dict))
        wait_until(lambda: all(not played.fetch(one).error_code for one in (0, 1)))
        wait_until(lambda: TransactionScript(client.ask, "first").init().error not in LOADING)
        answers = script(played)
        return {**answers, "logged": played.logged(LOG_PARTITIONS)}


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline


def strangers(script: TransactionScript) -> Answers:
    nobody = Producer(1 << 40, 0)
    return {
        "describe": script.describe(),
        "add": script.add(nobody, 0),
        "verify": script.verify(nobody, 0),
        "add offsets": script.add_offsets(nobody),
        "produce": script.produce(nobody, b"x"),
        "produce old": script.produce(nobody, b"x", version=OLD),
        "produce older": script.produce(nobody, b"x", version=10),
        "produce unnamed": script.produce(nobody, b"x", named=False),
        "commit offsets": script.commit_offsets(nobody, {0: 1}),
        "commit offsets old": script.commit_offsets(nobody, {0: 1}, version=4),
        "commit offsets older": script.commit_offsets(nobody, {0: 1}, version=3),
        "end": script.end(nobody),
        "end old": script.end(nobody, version=4).error,
        "init no time": script.init(timeout_ms=0),
        "init negative time": script.init(timeout_ms=-1),
        "init long time": script.init(timeout_ms=900_001),
    }


def init(script: TransactionScript) -> Answers:
    first = script.init()
    second = script.init(timeout_ms=1000)
    same = second.id == first.id
    third = script.init(second)
    retried = script.init(second)
    return {
        "epochs": (first.epoch, second.epoch, third.epoch, retried.epoch),
        "same": same,
        "fenced": script.init(first).error,
        "fenced old": script.init(first, version=3).error,
        "other id": script.init(Producer(first.id + 7, 3)).error,
        "half": script.init(Producer(first.id, -1)).error,
        "ahead": script.init(Producer(first.id, 9)).error,
        "describe": script.describe(),
    }


def ends_new(script: TransactionScript) -> Answers:
    """What EndTxn 5 answers in every state."""
    p0 = script.init()
    answers: Answers = {
        "commit empty": script.end(p0).error,
        "commit ahead": script.end(Producer(p0.id, 5)).error,
    }
    aborted = script.end(p0, commit=False)
    script.settle()
    answers |= {
        "abort empty": aborted.epoch,
        "after abort empty": script.describe(),
        "abort empty again": script.end(p0, commit=False).epoch,
        "commit after abort": script.end(p0).error,
    }
    p1 = aborted
    answers["produce"] = script.produce(p1, b"a")
    answers["ongoing"] = script.describe()
    answers["end with old epoch"] = script.end(p0).error
    p2 = script.end(p1)
    script.settle()
    answers |= {
        "commit": (p2.epoch, p2.error),
        "after commit": script.describe(),
        "retried": script.end(p1).epoch,
        "retried other way": script.end(p1, commit=False).error,
        "commit without records": script.end(p2).error,
        "too old": script.end(p0).error,
        "old version": script.end(p2, version=4).error,
        "old version, other way": script.end(p2, commit=False, version=4).error,
    }
    p3 = script.end(p2, commit=False)
    script.settle()
    answers |= {"abort after commit": p3.epoch, "at last": script.describe()}
    answers["read"] = script.read()
    answers["producers"] = list(script.producers().values())
    return answers


def ends_old(script: TransactionScript) -> Answers:
    """What EndTxn 4 answers in every state."""
    p = script.init()
    answers: Answers = {
        "commit empty": script.end(p, version=4).error,
        "abort empty": script.end(p, commit=False, version=4).error,
        "add": script.add(p, 0, 1),
        "add again": script.add(p, 0),
        "add none": script.add(p, 9),
        "add one of two": script.add(p, 1, 9),
        "verify": script.verify(p, 0),
        "verify old epoch": script.verify(p.older(), 0),
        "old epoch": script.add(p.older(), 0),
        "old epoch, old version": script.add(p.older(), 0, version=1),
        "other id": script.add(Producer(p.id + 5, p.epoch), 0),
        "produce": script.produce(p, b"a", version=OLD),
        "ongoing": script.describe(),
        "fenced": script.end(p.older(), version=4).error,
        "fenced, old version": script.end(p.older(), version=1).error,
        "commit": script.end(p, version=4).error,
    }
    script.settle()
    answers |= {
        "after commit": script.describe(),
        "again": script.end(p, version=4).error,
        "other way": script.end(p, commit=False, version=4).error,
        "late produce": script.produce(p, b"late", sequence=1, version=OLD),
        "late older produce": script.produce(p, b"late", sequence=1, version=10),
        "verify late": script.verify(p, 0),
    }
    script.add(p, 1)
    answers["not in it"] = script.produce(p, b"late", sequence=1, version=OLD)
    answers["in it"] = script.produce(p, b"b", partition=1, version=OLD)
    answers["abort"] = script.end(p, commit=False, version=4).error
    script.settle()
    answers |= {
        "after abort": script.describe(),
        "read": (script.read(0), script.read(1)),
        "producers": [list(script.producers(one).values()) for one in (0, 1)],
        "list": [one for one in script.list_all() if one[0] == script.transactional_id],
    }
    return answers


def ends_mixed(script: TransactionScript) -> Answers:
    """EndTxn 5 after transactions of older clients, as when the cluster is upgraded."""
    zombie = script.init()
    p = script.init()
    script.add(p, 0)
    script.produce(p, b"a", version=OLD)
    answers: Answers = {"commit": script.end(p, version=4).error}
    script.settle()
    answers |= {
        "zombie commits": script.end(zombie).error,
        "zombie aborts": script.end(zombie, commit=False).error,
        "commit new": script.end(p).error,
        "described": script.describe(),
    }
    aborted = script.end(p, commit=False)
    script.settle()
    answers |= {"abort new": (aborted.epoch, aborted.error), "at last": script.describe()}
    return answers


def fencing(script: TransactionScript) -> Answers:
    zombie = script.init()
    script.produce(zombie, b"zombie")
    answers: Answers = {"first": script.init().error}
    script.settle()
    answers["aborted"] = script.describe()
    answers["producers"] = list(script.producers().values())
    producer = script.started()
    return {
        **answers,
        "epoch": producer.epoch - zombie.epoch,
        "produce": script.produce(zombie, b"x", sequence=1),
        "produce old": script.produce(zombie, b"x", sequence=1, version=OLD),
        "end": script.end(zombie).error,
        "add": script.add(zombie, 0),
        "add offsets": script.add_offsets(zombie),
        "add offsets old": script.add_offsets(zombie, version=1),
        "commit offsets": script.commit_offsets(zombie, {0: 1}),
        "commit offsets old": script.commit_offsets(zombie, {0: 1}, version=4),
        "continues": script.init(zombie).error,
        "continues old": script.init(zombie, version=3).error,
        "read": script.read(),
    }


def continuing(script: TransactionScript) -> Answers:
    """A producer goes on after an error, and names its epoch (KIP-360)."""
    p0 = script.init()
    script.produce(p0, b"a")
    answers: Answers = {"open": script.end_offset(), "ongoing": script.init(p0).error}
    script.settle()
    p1 = script.init(p0)
    answers |= {"retried": (p1.epoch, p1.error), "described": script.describe()}
    script.ended(p1, commit=False)
    p2 = script.init(p1)
    answers["after an unheard end"] = (p2.epoch, p2.error)
    answers["too old"] = script.init(p0).error
    return answers


def fenced_in_a_partition(script: TransactionScript) -> Answers:
    """A newer epoch has written to a partition, and the coordinator does not know."""
    p = script.init()
    return {
        "marker": script.write_marker(Producer(p.id, p.epoch + 1)),
        "produce": script.produce(p, b"x"),
        "described": script.describe(),
        "produce old": script.produce(p, b"x", version=OLD),
        "produce older": script.produce(p, b"x", version=10),
        "elsewhere": script.produce(p, b"x", partition=1),
        "at last": script.describe(),
    }


def sequences(script: TransactionScript) -> Answers:
    p = script.init()
    answers: Answers = {
        "not from zero": script.produce(p, b"x", sequence=3),
        "zero": script.produce(p, b"a"),
        "duplicate": script.produce(p, b"a"),
        "gap": script.produce(p, b"x", sequence=3),
        "not transactional": script.produce(p, b"x", sequence=1, transactional=False),
        "next": script.produce(p, b"b", sequence=1),
    }
    p = script.end(p)
    script.settle()
    answers |= {
        "duplicate of before": script.produce(p.older(), b"b", sequence=1),
        "not from zero again": script.produce(p, b"x", sequence=2),
        "zero again": script.produce(p, b"c"),
        "old client": script.produce(p, b"d", sequence=1, version=OLD),
        "no such topic": script.produce(p, b"d", topic="nowhere"),
        "no such partition": script.produce(p, b"d", partition=7),
    }
    script.end(p)
    script.settle()
    answers["read"] = script.read()
    return answers


def old_sequences(script: TransactionScript) -> Answers:
    p = script.init()
    script.add(p, 0)
    return {
        "not from zero": script.produce(p, b"x", sequence=3, version=OLD),
        "next": script.produce(p, b"x", sequence=4, version=OLD),
        "zero": script.produce(p, b"x", sequence=0, version=OLD),
    }


def offsets(script: TransactionScript) -> Answers:
    group = script.transactional_id
    p = script.init()
    answers: Answers = {
        "not added": script.commit_offsets(p, {0: 1}, group=group, version=4),
        "not added, older": script.commit_offsets(p, {0: 1}, group=group, version=3),
        "add": script.add_offsets(p, group),
        "commit": script.commit_offsets(p, {0: 1, 1: 2}, group=group, version=4),
        "no such partition": script.commit_offsets(p, {0: 1, 9: 2}, group=group),
        "no such topic": script.commit_offsets(p, {0: 1}, group=group, topic="nowhere"),
        "metadata": script.commit_offsets(p, {0: 1}, group=group, metadata="x" * 4097),
        "generation": script.commit_offsets(p, {0: 1}, group=group, generation=3),
        "member": script.commit_offsets(p, {0: 1}, group=group, member="m", generation=3),
        "unstable": script.committed(0, 1, group=group),
        "as it was": script.committed(0, group=group, stable=False),
    }
    described = script.describe()
    answers["partitions"] = [topic for topic, _ in described["partitions"]]
    p = script.end(p)
    script.settle()
    answers["stable"] = script.committed(0, 1, group=group)
    answers["commit new"] = script.commit_offsets(p, {0: 3}, group=group)
    answers["unstable again"] = script.committed(0, group=group)
    p = script.end(p, commit=False)
    script.settle()
    answers["aborted"] = script.committed(0, group=group)
    answers["other group"] = script.commit_offsets(
        p, {0: 3}, group=f"{group}-2", member="m", generation=1
    )
    answers["after a refusal"] = script.describe()["state"]
    answers["end"] = script.end(p).error
    script.settle()
    return answers


def markers(script: TransactionScript) -> Answers:
    """Markers that no coordinator sent."""
    p = script.init()
    answers: Answers = {"nothing written": script.write_marker(p)}
    script.produce(p, b"a")
    answers |= {
        "no such partition": script.write_marker(p, partition=9),
        "no such topic": script.write_marker(p, topic="nowhere"),
        "strict, same epoch": script.write_marker(p, transaction_version=2),
        "same epoch": script.write_marker(p, version=1),
        "read": script.read(),
        "late produce": script.produce(p, b"b", sequence=1),
        "late produce, old": script.produce(p, b"b", sequence=1, version=OLD),
        "next epoch": script.write_marker(Producer(p.id, p.epoch + 1), transaction_version=2),
        "retried": script.write_marker(Producer(p.id, p.epoch + 1), transaction_version=2),
        "old epoch": script.write_marker(p),
        "end offset": script.end_offset(),
        "retried, lax": script.write_marker(Producer(p.id, p.epoch + 1)),
        "newer coordinator": script.write_marker(Producer(p.id, p.epoch + 1), coordinator_epoch=7),
        "older coordinator": script.write_marker(Producer(p.id, p.epoch + 1), coordinator_epoch=6),
        "last offset": script.end_offset(),
        "producers": list(script.producers().values()),
    }
    return answers


def lists(script: TransactionScript) -> Answers:
    def mine(**filters: Any) -> list[tuple[str, str]]:
        found = script.list_all(**filters)
        return [one for one in found if one[0] == script.transactional_id]

    p = script.init()
    answers: Answers = {
        "empty": mine(),
        "in state": mine(state_filters=["Empty"]),
        "in another": mine(state_filters=["Ongoing"]),
        "unknown state": mine(state_filters=["Nonsense"]),
    }
    script.produce(p, b"a")
    answers |= {
        "ongoing": mine(state_filters=["Ongoing", "Empty"]),
        "by id": mine(producer_id_filters=[p.id]),
        "by another": mine(producer_id_filters=[p.id + 50]),
        "long": mine(duration_filter=100_000),
        "short": mine(duration_filter=0) == mine(),
        "by pattern": mine(transactional_id_pattern=script.transactional_id[:3] + ".*"),
        "by a part": mine(transactional_id_pattern=script.transactional_id[:3]),
    }
    return answers


SCRIPTS = [
    strangers,
    init,
    ends_new,
    ends_old,
    ends_mixed,
    fencing,
    continuing,
    fenced_in_a_partition,
    sequences,
    old_sequences,
    offsets,
    markers,
    lists,
]


@pytest.mark.parametrize("script", SCRIPTS, ids=[one.__name__ for one in SCRIPTS])
def test_the_answers_are_apache_kafkas(ours, apache, script: Script):
    name = f"script-{script.__name__}"
    ours_said = play(ours.port, name, script)
    theirs_said = play(apache.port, name, script)
    assert ours_said == theirs_said


def test_a_groups_members_are_checked_as_in_apache_kafka(ours, apache):
    """TxnOffsetCommit of members, strangers, older generations and fenced static members."""

    def play_members(port: int) -> Answers:
        name = "script-members"
        create_topic(f"127.0.0.1:{port}", name, 2)
        with GroupScript(port, name) as group, RawClient(port) as client:
            script = TransactionScript(client.ask, name, name)
            wait_until(lambda: script.find() not in LOADING)
            wait_until(lambda: script.describe()["error"] not in LOADING)
            producer = script.started()
            group.join("a", group_instance_id="i")
            group.sync("a", 1, assignments={"a": b"all"}, group_instance_id="i")

            def commit(member: str = "", generation: int = -1, **fields: Any) -> Any:
                return script.commit_offsets(
                    producer,
                    {0: 1},
                    group=name,
                    member=group.ids.get(member, member),
                    generation=generation,
                    **fields,
                )

            answers = {
                "member": commit("a", 1),
                "instance": commit("a", 1, instance="i"),
                "other instance": commit("a", 1, instance="j"),
                "old generation": commit("a", 0),
                "next generation": commit("a", 2),
                "stranger": commit("nobody", 1),
                "no member": commit("", 1),
                "nothing": commit(),
                "nothing, old": commit(version=2),
                "member without generation": commit("a", -1),
                "instance alone": commit("", -1, instance="i"),
            }
            group.start_join("b", group_instance_id="i")
            group.joined("b")
            answers |= {
                "fenced": commit("a", 1, instance="i"),
                "fenced, unnamed": commit("a", 1),
                "successor": commit("b", 1, instance="i"),
            }
            group.start_join("c")
            assert group.joined("c")["error"] == 79
            group.start_join("c")
            wait_until(lambda: group.heartbeat("b", 1, group_instance_id="i") == 27)
            answers["during a rebalance"] = commit("b", 1, instance="i")
            script.end(producer)
            return answers

    assert play_members(ours.port) == play_members(apache.port)
