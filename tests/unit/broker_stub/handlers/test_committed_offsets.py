"""OffsetCommit and OffsetFetch on the wire, in every version; what a restart brings back."""

from typing import Any

import pytest

from broker_stub import dispatch
from pyclient.error_codes import (
    CoordinatorLoadInProgressError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    NotCoordinatorError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.support.group_member import SESSION_MS, GroupMember, find_coordinator, stable_pair
from tests.support.node_harness import NodeHarness
from tests.support.offset_requests import offset_commit_request, offset_fetch_request

Found = dict[tuple[str, int], tuple[int, str]]


@pytest.fixture(autouse=True)
def topics(harness: NodeHarness) -> None:
    find_coordinator(harness)
    harness.create_topic("orders", 2)
    harness.create_topic("payments")


def commit_request(
    offsets: dict[tuple[str, int], int], *, group_id: str = "group", leader_epoch: int = -1
) -> OffsetCommitRequest:
    """A commit without a member; the metadata tells the partitions apart."""
    request = offset_commit_request(group_id, offsets, leader_epoch=leader_epoch)
    for topic in request.topics:
        for one in topic.partitions:
            one.committed_metadata = f"about {topic.name}-{one.partition_index}"
    return request


def commit(harness: NodeHarness, version: int = 9, **offsets: int) -> None:
    request = commit_request({("orders", 0): offsets["orders"]})
    response = harness.ask(request, version)
    assert response.topics[0].partitions[0].error_code == 0


def fetch(
    harness: NodeHarness, version: int, wanted: dict[str, list[int]] | None, group: str = "group"
) -> Found:
    """Offset and metadata by partition, in whichever form the version has."""
    response = harness.ask(offset_fetch_request(group, wanted, version), version)
    if version < 8:
        assert response.error_code == 0
        return _found(response.topics)
    (answered,) = response.groups
    assert (answered.group_id, answered.error_code) == (group, 0)
    return _found(answered.topics)


def _found(topics: list[Any]) -> Found:
    assert all(one.error_code == 0 for topic in topics for one in topic.partitions)
    return {
        (topic.name, one.partition_index): (one.committed_offset, one.metadata)
        for topic in topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(2, 10))
def test_offsets_and_their_metadata_are_kept_in_every_version(harness, version):
    offsets = {("orders", 0): 5, ("orders", 1): 7, ("payments", 0): 2**40}
    response = harness.ask(commit_request(offsets), version)
    codes = [one.error_code for topic in response.topics for one in topic.partitions]
    assert codes == [0, 0, 0]
    expected = {
        (topic, index): (offset, f"about {topic}-{index}")
        for (topic, index), offset in offsets.items()
    }
    assert fetch(harness, 9, {"orders": [0, 1], "payments": [0]}) == expected


@pytest.mark.parametrize("version", range(1, 10))
def test_offsets_are_found_in_every_version_and_minus_one_where_there_are_none(harness, version):
    commit(harness, orders=5)
    found = fetch(harness, version, {"orders": [0, 1], "unknown": [3]})
    assert found == {
        ("orders", 0): (5, "about orders-0"),
        ("orders", 1): (-1, ""),
        ("unknown", 3): (-1, ""),
    }


@pytest.mark.parametrize("version", range(2, 10))
def test_all_offsets_of_a_group_are_found_if_no_topics_are_named(harness, version):
    harness.ask(commit_request({("orders", 1): 7, ("payments", 0): 1}), 9)
    harness.ask(commit_request({("orders", 0): 99}, group_id="another"), 9)
    found = fetch(harness, version, None)
    assert {partition: offset for partition, (offset, _) in found.items()} == {
        ("orders", 1): 7,
        ("payments", 0): 1,
    }
    assert fetch(harness, version, None, group="unknown") == {}


@pytest.mark.parametrize("version", [8, 9])
def test_several_groups_are_looked_up_at_once(harness, version):
    harness.ask(commit_request({("orders", 0): 1}, group_id="a"), 9)
    harness.ask(commit_request({("orders", 0): 2}, group_id="b"), 9)
    groups = [one for name in "ab" for one in offset_fetch_request(name, {"orders": [0]}).groups]
    response = harness.ask(OffsetFetchRequest(groups=groups), version)
    found = {group.group_id: _found(group.topics) for group in response.groups}
    assert {name: one["orders", 0][0] for name, one in found.items()} == {"a": 1, "b": 2}


@pytest.mark.parametrize("version", [5, 6, 7, 8, 9])
def test_the_leader_epoch_of_an_offset_is_kept(harness, version):
    harness.ask(commit_request({("orders", 0): 5}, leader_epoch=3), 6)
    wanted = {"orders": [0]} if version < 8 else None
    response = harness.ask(offset_fetch_request("group", wanted, version), version)
    (topic,) = response.topics if version < 8 else response.groups[0].topics
    assert topic.partitions[0].committed_leader_epoch == 3


@pytest.mark.parametrize("version", range(2, 10))
def test_partitions_that_do_not_exist_are_refused_and_the_others_kept(harness, version):
    offsets = {("orders", 0): 5, ("orders", 2): 5, ("unknown", 0): 5}
    response = harness.ask(commit_request(offsets), version)
    codes = {
        (topic.name, one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
    }
    unknown = UnknownTopicOrPartitionError.code
    assert codes == {("orders", 0): 0, ("orders", 2): unknown, ("unknown", 0): unknown}
    assert fetch(harness, 9, None) == {("orders", 0): (5, "about orders-0")}


def codes(harness: NodeHarness, request: OffsetCommitRequest) -> dict[tuple[str, int], int]:
    """The error of each partition."""
    return {
        (topic.name, one.partition_index): one.error_code
        for topic in harness.ask(request, 9).topics
        for one in topic.partitions
    }


def test_partitions_that_do_not_exist_are_told_so_before_the_group_is_looked_at(harness):
    offsets = {("orders", 0): 5, ("orders", 2): 5, ("unknown", 0): 5}
    stranger = {"member_id": "stranger", "generation_id_or_member_epoch": 3}
    request = commit_request(offsets)
    request.member_id, request.generation_id_or_member_epoch = stranger.values()
    unknown = UnknownTopicOrPartitionError.code
    assert codes(harness, request) == {
        ("orders", 0): GroupIdNotFoundError.code,
        ("orders", 2): unknown,
        ("unknown", 0): unknown,
    }
    request = commit_request({("unknown", 0): 5})
    request.member_id, request.generation_id_or_member_epoch = stranger.values()
    assert codes(harness, request) == {("unknown", 0): unknown}


def test_the_group_is_looked_at_before_the_metadata(harness):
    stable_pair(harness)
    request = commit_request({("orders", 0): 5})
    request.topics[0].partitions[0].committed_metadata = "x" * 4097
    assert codes(harness, request) == {("orders", 0): UnknownMemberIdError.code}


@pytest.mark.parametrize("version", range(1, 10))
def test_a_topic_may_be_asked_for_in_several_pieces(harness, version):
    harness.ask(commit_request({("orders", 0): 5, ("orders", 1): 6}), 9)
    pieces = [("orders", [0]), ("payments", [0]), ("orders", [1, 1])]
    response = harness.ask(offset_fetch_request("group", pieces, version), version)
    topics = response.topics if version < 8 else response.groups[0].topics
    assert [
        (topic.name, [(one.partition_index, one.committed_offset) for one in topic.partitions])
        for topic in topics
    ] == [("orders", [(0, 5)]), ("payments", [(0, -1)]), ("orders", [(1, 6), (1, 6)])]


def test_version_10_names_topics_by_id(harness):
    orders = harness.node.image.topic("orders").topic_id
    unknown = b"u" * 16
    request = commit_request({("", 1): 7})
    request.topics[0].topic_id = orders
    request.topics.append(
        OffsetCommitRequestTopic(
            topic_id=unknown,
            partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=3)],
        )
    )
    request.topics[0].partitions.append(
        OffsetCommitRequestPartition(partition_index=9, committed_offset=3)
    )
    codes = [
        (topic.topic_id, one.partition_index, one.error_code)
        for topic in harness.ask(request, 10).topics
        for one in topic.partitions
    ]
    assert codes == [
        (orders, 1, 0),
        (orders, 9, UnknownTopicOrPartitionError.code),
        (unknown, 0, UnknownTopicIdError.code),
    ]
    assert fetch(harness, 9, None) == {("orders", 1): (7, "about -1")}
    asked = [
        OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[1])
        for topic_id in (orders, unknown)
    ]
    for topics in (asked, None):
        group = OffsetFetchRequestGroup(group_id="group", topics=topics)
        (answered,) = harness.ask(OffsetFetchRequest(groups=[group]), 10).groups
        found = [
            (topic.topic_id, one.committed_offset, one.error_code)
            for topic in answered.topics
            for one in topic.partitions
        ]
        missing = [(unknown, -1, UnknownTopicIdError.code)] if topics else []
        assert found == [(orders, 7, 0), *missing]


def test_no_metadata_is_an_empty_text(harness):
    request = commit_request({("orders", 0): 5})
    request.topics[0].partitions[0].committed_metadata = None
    harness.ask(request, 9)
    assert fetch(harness, 9, None) == {("orders", 0): (5, "")}


def test_metadata_that_is_too_long_is_refused(harness):
    request = commit_request({("orders", 0): 5})
    request.topics[0].partitions[0].committed_metadata = "ä" * 4096  # counted as Java does
    assert harness.ask(request, 9).topics[0].partitions[0].error_code == 0
    request = commit_request({("orders", 1): 5})
    request.topics[0].partitions[0].committed_metadata = "😀" * 2048 + "x"
    response = harness.ask(request, 9)
    assert response.topics[0].partitions[0].error_code == OffsetMetadataTooLargeError.code
    assert list(fetch(harness, 9, None)) == [("orders", 0)]


def test_only_members_commit_while_a_group_has_some(harness):
    leader, follower = stable_pair(harness)
    assert leader.commit(5) == 0
    assert GroupMember(harness).commit(6) == UnknownMemberIdError.code
    follower.generation_id = 1
    assert follower.commit(7) == IllegalGenerationError.code
    stranger = GroupMember(harness)
    stranger.member_id, stranger.generation_id = "stranger", 2
    assert stranger.commit(8) == UnknownMemberIdError.code
    assert fetch(harness, 9, None)["orders", 0][0] == 5


def test_a_commit_waits_for_the_sync_but_not_for_the_join(harness):
    leader, follower = stable_pair(harness)
    pending = leader.start_join()
    assert follower.commit(5) == 0  # the last chance before it gives its partitions up
    follower.joined(follower.start_join())
    leader.joined(pending)
    assert follower.commit(6) == RebalanceInProgressError.code


def test_a_commit_keeps_a_member_in(harness):
    leader, _ = stable_pair(harness)
    harness.advance(SESSION_MS - 1)
    assert leader.commit(5) == 0
    harness.advance(SESSION_MS - 1)
    assert leader.heartbeat() == RebalanceInProgressError.code  # of the silent one


def test_an_empty_group_takes_commits_of_those_who_are_no_members(harness):
    leader, follower = stable_pair(harness)
    leader.leave()
    follower.leave()
    assert GroupMember(harness).commit(5) == 0
    departed = GroupMember(harness)
    departed.member_id = leader.member_id
    assert departed.commit(6) == 0
    assert leader.commit(7) == UnknownMemberIdError.code


def test_a_generation_of_a_group_that_does_not_exist_is_refused(harness):
    member = GroupMember(harness, group_id="unheard-of")
    member.member_id, member.generation_id = "m", 1
    assert member.commit(5, version=8) == IllegalGenerationError.code
    assert member.commit(5, version=9) == GroupIdNotFoundError.code


def test_offsets_without_a_group_are_kept_as_kafka_does(harness):
    harness.ask(commit_request({("orders", 0): 5}, group_id=""), 9)
    assert fetch(harness, 9, None, group="") == {("orders", 0): (5, "about orders-0")}


@pytest.mark.parametrize("clean", [True, False])
def test_offsets_outlive_a_restart_and_a_kill(harness, clean):
    harness.ask(commit_request({("orders", 0): 5, ("orders", 1): 6}), 9)
    commit(harness, orders=8)
    harness.restart(clean=clean)
    assert fetch(harness, 9, None) == {
        ("orders", 0): (8, "about orders-0"),
        ("orders", 1): (6, "about orders-1"),
    }


@pytest.mark.parametrize("clean", [True, False])
def test_a_group_goes_on_after_a_restart_and_a_kill_as_if_nothing_had_been(harness, clean):
    leader, follower = stable_pair(harness)
    harness.restart(clean=clean)
    assert leader.heartbeat() == follower.heartbeat() == 0
    assert follower.start_sync().response.assignment == b"other half"
    assert follower.commit(5) == 0
    # And its rebalances count on.
    follower.leave()
    (only,) = leader.joined(leader.start_join()).members
    assert (only.member_id, leader.generation_id) == (leader.member_id, 3)


def test_members_that_do_not_come_back_after_a_restart_lose_their_sessions(harness):
    leader, follower = stable_pair(harness)
    harness.restart(clean=False)
    harness.advance(SESSION_MS - 1)
    assert leader.heartbeat() == 0
    harness.advance(1)
    assert follower.heartbeat() == UnknownMemberIdError.code


def test_a_group_is_there_after_a_kill_in_its_first_rebalance(harness):
    GroupMember(harness).join()
    GroupMember(harness, group_id="pending").start_join()
    harness.restart(clean=False)
    groups = harness.node.coordinator.groups()
    assert {one.group_id: (one.state.value, one.generation_id) for one in groups} == {
        "group": ("Empty", 0),
        "pending": ("Empty", 0),
    }


def test_a_group_that_was_empty_is_empty_after_a_restart(harness):
    leader, follower = stable_pair(harness)
    leader.leave()
    follower.leave()
    harness.restart()
    newcomer = GroupMember(harness, join=3)
    newcomer.join()
    assert newcomer.generation_id == 4  # 3 was the one without members


def test_a_static_member_finds_its_place_after_a_restart_of_the_broker(harness):
    old = GroupMember(harness, instance_id="i")
    old.join("range", "roundrobin")
    old.start_sync({old.member_id: b"everything"})
    harness.restart()
    new = GroupMember(harness, instance_id="i")
    new.join("range", "roundrobin")
    assert new.generation_id == old.generation_id
    assert new.start_sync().response.assignment == b"everything"


def test_offsets_of_a_deleted_topic_are_forgotten_for_good(harness):
    harness.ask(commit_request({("orders", 0): 5, ("payments", 0): 6}), 9)
    harness.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]), 6)
    harness.create_topic("orders", 2)
    left = {("payments", 0): (6, "about payments-0")}
    assert fetch(harness, 9, None) == left
    harness.restart(clean=False)
    assert fetch(harness, 9, None) == left


def test_commits_before_anybody_found_the_coordinator_are_sent_to_ask(tmp_path):
    harness = NodeHarness(tmp_path / "new")
    harness.create_topic("orders")
    response = harness.ask(commit_request({("orders", 0): 5}), 9)
    assert response.topics[0].partitions[0].error_code == NotCoordinatorError.code
    harness.node.abandon()


def test_a_refused_offset_fetch_says_so_where_its_version_looks():
    error = CoordinatorLoadInProgressError()
    old = dispatch.refusal(offset_fetch_request("group", {"orders": [0]}, 7), error)
    assert old.topics[0].partitions[0].error_code == old.error_code == error.code
    new = dispatch.refusal(offset_fetch_request("group", None), error)
    assert [(one.group_id, one.error_code) for one in new.groups] == [("group", error.code)]
