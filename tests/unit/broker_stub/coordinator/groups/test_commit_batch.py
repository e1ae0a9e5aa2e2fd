"""The commits of one turn of the server: one batch, answered when it is written."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_stub.coordinator.groups.group_log import OFFSETS_TOPIC
from broker_stub.coordinator.placement import partition_for
from broker_stub.log.internal_batches import read_batches
from broker_stub.replica.manager import ReplicaManager
from pyclient.error_codes import (
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    UnknownMemberIdError,
    UnknownServerError,
)
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pyclient.types import TopicPartition
from tests.support.failing_disk import FailingDisk
from tests.support.group_member import GroupMember, find_coordinator, stable_pair
from tests.support.held_background import HeldBackground
from tests.support.node_harness import NodeHarness, Pending
from tests.support.offset_requests import offset_commit_request, offset_fetch_request


@pytest.fixture(autouse=True)
def topics(harness: NodeHarness) -> None:
    find_coordinator(harness)
    harness.create_topic("orders", 2)


def commit(
    harness: NodeHarness,
    offset: int,
    *,
    group: str = "group",
    member: GroupMember | None = None,
    index: int = 0,
    metadata: str = "",
) -> Pending:
    request = offset_commit_request(
        group if member is None else member.group_id,
        {("orders", index): offset},
        metadata=metadata,
        generation_id_or_member_epoch=-1 if member is None else member.generation_id,
        member_id="" if member is None else member.member_id,
    )
    return harness.start(request, 9)


def code(answer: Pending) -> int:
    error_code: int = answer.response.topics[0].partitions[0].error_code
    return error_code


def committed(harness: NodeHarness, index: int = 0, group: str = "group") -> int:
    response = harness.ask(offset_fetch_request(group, {"orders": [index]}, 7), 7)
    offset: int = response.topics[0].partitions[0].committed_offset
    return offset


def batch_sizes(harness: NodeHarness, group: str = "group") -> list[int]:
    """Records of each batch in the group's partition of the log."""
    count = len(harness.node.coordinator.log_topic().partitions)
    index = partition_for(group, count)
    log = harness.node.replicas.partition(OFFSETS_TOPIC, index).log
    return [one.record_count for one in read_batches(log, 0)]


@pytest.fixture
def group(harness: NodeHarness) -> None:
    """A group that exists, with an offset of each partition."""
    assert code(commit(harness, 1)) == 0
    assert code(commit(harness, 1, index=1)) == 0


def test_outside_a_turn_a_commit_is_answered_at_once(harness, group):
    answer = commit(harness, 5)
    assert answer.parked is None
    assert code(answer) == 0


def test_the_commits_of_a_turn_are_one_batch_and_answered_after_it(harness, group):
    before = batch_sizes(harness)
    harness.node.turn.begin()
    answers = [commit(harness, 10 + number, index=number % 2) for number in range(9)]
    assert not any(answer.arrived for answer in answers)
    assert batch_sizes(harness) == before
    kept = harness.node.coordinator.offsets.get("group", TopicPartition("orders", 0))
    assert kept is not None
    assert kept.offset == 1
    harness.node.turn.end()
    assert [code(answer) for answer in answers] == [0] * 9
    assert batch_sizes(harness) == [*before, 9]
    assert (committed(harness, 0), committed(harness, 1)) == (18, 17)


def test_of_two_commits_of_a_partition_the_later_counts_also_after_a_crash(harness, group):
    harness.node.turn.begin()
    answers = [commit(harness, offset) for offset in (70, 30)]
    harness.node.turn.end()
    assert [code(answer) for answer in answers] == [0, 0]
    assert committed(harness) == 30
    harness.restart(clean=False)
    assert committed(harness) == 30


def test_groups_in_different_partitions_of_the_log_have_batches_of_their_own(harness, group):
    assert code(commit(harness, 1, group="another")) == 0
    harness.node.turn.begin()
    answers = [commit(harness, 7), commit(harness, 8, group="another"), commit(harness, 9)]
    harness.node.turn.end()
    assert [code(answer) for answer in answers] == [0, 0, 0]
    assert batch_sizes(harness)[-1] == 2
    assert batch_sizes(harness, "another")[-1] == 1
    assert (committed(harness), committed(harness, group="another")) == (9, 8)


def test_a_fetch_of_offsets_in_the_same_turn_sees_the_commits_before_it(harness, group):
    harness.node.turn.begin()
    first = commit(harness, 5)
    assert committed(harness) == 5
    assert first.arrived
    second = commit(harness, 6)
    assert not second.arrived
    harness.node.turn.end()
    assert code(second) == 0


def test_a_rebalance_in_the_same_turn_comes_after_the_commits_before_it(harness):
    leader, follower = stable_pair(harness)
    harness.node.turn.begin()
    before = commit(harness, 5, member=follower)
    assert not before.arrived
    follower.leave()
    assert code(before) == 0  # written before the group changed
    after = commit(harness, 6, member=follower)
    stays = commit(harness, 7, member=leader)  # the members that stay may commit, then rejoin
    harness.node.turn.end()
    assert code(after) == UnknownMemberIdError.code
    assert code(stays) == 0
    assert committed(harness) == 7
    sizes = batch_sizes(harness)
    harness.restart(clean=False)
    assert batch_sizes(harness) == sizes
    assert committed(harness) == 7


def test_a_commit_that_creates_its_group_is_found_by_the_next_of_the_turn(harness):
    harness.node.turn.begin()
    first = commit(harness, 5)
    stranger = GroupMember(harness)
    stranger.member_id, stranger.generation_id = "nobody", 3
    second = commit(harness, 6, member=stranger)
    harness.node.turn.end()
    assert code(first) == 0
    assert code(second) == UnknownMemberIdError.code  # not that there is no such group


def test_a_batch_that_the_disk_refuses_fails_every_commit_in_it(
    harness, group, monkeypatch, caplog
):
    disk = FailingDisk(monkeypatch)
    disk.refuse(errno.ENOSPC, "pwrite", suffix=".log")
    harness.node.turn.begin()
    answers = [commit(harness, offset) for offset in (5, 6, 7)]
    harness.node.turn.end()
    assert [code(answer) for answer in answers] == [NotCoordinatorError.code] * 3
    assert caplog.text.count("cannot write group group to __consumer_offsets") == 1
    assert committed(harness) == 1
    disk.mend()
    harness.node.turn.begin()
    again = commit(harness, 8)
    harness.node.turn.end()
    assert code(again) == 0
    harness.restart(clean=False)
    assert committed(harness) == 8


def test_a_mistake_of_ours_answers_every_commit(harness, group, monkeypatch, caplog):
    def fail(*arguments: object, **keywords: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ReplicaManager, "append", fail)
    harness.node.turn.begin()
    answers = [commit(harness, offset) for offset in (5, 6)]
    harness.node.turn.end()
    assert [code(answer) for answer in answers] == [UnknownServerError.code] * 2
    assert "OffsetCommit failed" in caplog.text


def test_commits_that_are_too_large_together_are_written_alone(tmp_path: Path, caplog):
    harness = NodeHarness(tmp_path / "small", message_max_bytes=600)
    find_coordinator(harness)
    harness.create_topic("orders", 2)
    assert code(commit(harness, 1)) == 0
    harness.node.turn.begin()
    answers = [
        commit(harness, 5, metadata="m" * 300),
        commit(harness, 6, metadata="m" * 1000),
        commit(harness, 7, metadata="m" * 300),
    ]
    harness.node.turn.end()
    assert [code(answer) for answer in answers] == [0, UnknownServerError.code, 0]
    assert batch_sizes(harness) == [1, 1, 1]
    assert committed(harness) == 7
    harness.node.abandon()


def test_a_turn_collects_a_bounded_amount(harness, group):
    harness.node.turn.begin()
    answers = [commit(harness, number, metadata="m" * 4096) for number in range(40)]
    arrived = [answer.arrived for answer in answers]
    harness.node.turn.end()
    assert arrived.index(False) == 32  # two batches of 64 KB, the rest waited
    assert [code(answer) for answer in answers] == [0] * 40
    assert batch_sizes(harness)[-3:] == [16, 16, 8]


def test_a_client_that_hangs_up_has_committed(harness, group):
    harness.node.turn.begin()
    answer = commit(harness, 5)
    assert answer.parked is not None
    answer.parked.abandon()
    harness.node.turn.end()
    assert not answer.arrived
    assert committed(harness) == 5


@pytest.fixture
def flushing(tmp_path: Path) -> Iterator[NodeHarness]:
    """A node whose logs are flushed after every record."""
    made = NodeHarness(tmp_path / "flushing", log_flush_interval_messages=1)
    find_coordinator(made)
    made.create_topic("orders", 2)
    assert code(commit(made, 1)) == 0
    yield made
    made.node.abandon()


@pytest.mark.parametrize("in_turn", [True, False])
def test_the_answers_wait_for_a_flush_that_is_due(flushing, in_turn):
    background = flushing.node.background = HeldBackground()
    if in_turn:
        flushing.node.turn.begin()
    answers = [commit(flushing, offset) for offset in (5, 6)]
    flushing.node.turn.end()
    assert len(background.held) == (1 if in_turn else 2)
    assert not any(answer.arrived for answer in answers)
    while background.held:
        background.let_go()
    assert [code(answer) for answer in answers] == [0, 0]


def test_a_flush_that_fails_refuses_its_commits(flushing):
    background = flushing.node.background = HeldBackground()
    answer = commit(flushing, 5)
    background.let_go(OSError(errno.EIO, "the disk is broken"))
    assert code(answer) == NotCoordinatorError.code


def test_a_flush_of_a_log_that_was_deleted_refuses_its_commits(flushing):
    inline = flushing.node.background
    background = flushing.node.background = HeldBackground()
    answer = commit(flushing, 5)
    flushing.node.background = inline
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=OFFSETS_TOPIC)])
    assert flushing.ask(request).responses[0].error_code == 0
    background.let_go()
    assert code(answer) == CoordinatorNotAvailableError.code
