"""ListGroups, DescribeGroups and DeleteGroups: looking at groups from outside."""

from typing import Any

import pytest

from pyclient.error_codes import (
    GroupIdNotFoundError,
    GroupNotEmptyError,
)
from pyclient.protocol.messages.delete_groups import DeleteGroupsRequest
from pyclient.protocol.messages.describe_groups import DescribeGroupsRequest
from pyclient.protocol.messages.list_groups import ListGroupsRequest
from pyclient.types import TopicPartition
from tests.support.group_member import GroupMember, find_coordinator, stable_pair
from tests.support.node_harness import NodeHarness


def listed(harness: NodeHarness, version: int = 5, **filters: Any) -> dict[str, tuple[str, ...]]:
    response = harness.ask(ListGroupsRequest(**filters), version)
    assert response.error_code == 0
    return {
        one.group_id: (one.protocol_type, one.group_state, one.group_type)
        for one in response.groups
    }


def described(harness: NodeHarness, group_id: str = "group", version: int = 6) -> Any:
    return harness.ask(DescribeGroupsRequest(groups=[group_id]), version).groups[0]


def deleted(harness: NodeHarness, group_id: str = "group", version: int = 2) -> int:
    request = DeleteGroupsRequest(groups_names=[group_id])
    code: int = harness.ask(request, version).results[0].error_code
    return code


def simple_commit(harness: NodeHarness, group_id: str = "simple") -> None:
    """Offsets without members."""
    harness.create_topic("orders")
    assert GroupMember(harness, group_id=group_id).commit(5) == 0


@pytest.mark.parametrize("version", range(6))
def test_groups_with_members_and_groups_with_offsets_alone_are_listed(harness, version):
    assert listed(harness, version) == {}
    stable_pair(harness)
    simple_commit(harness)
    state, other = ("Stable", "Empty") if version >= 4 else ("", "")
    kind = "classic" if version >= 5 else ""
    assert listed(harness, version) == {
        "group": ("consumer", state, kind),
        "simple": ("", other, kind),
    }


def test_groups_are_listed_by_state_and_type(harness):
    stable_pair(harness)
    simple_commit(harness)
    assert set(listed(harness, states_filter=["stable"])) == {"group"}
    assert set(listed(harness, states_filter=["Empty", "Dead"])) == {"simple"}
    assert set(listed(harness, types_filter=["Classic"])) == {"group", "simple"}
    assert listed(harness, types_filter=["consumer"]) == {}


@pytest.mark.parametrize("version", range(7))
def test_a_stable_group_is_described_with_its_members(harness, version):
    leader, follower = stable_pair(harness)
    group = described(harness, version=version)
    assert (group.error_code, group.group_state) == (0, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    members = {one.member_id: one for one in group.members}
    assert set(members) == {leader.member_id, follower.member_id}
    one = members[leader.member_id]
    assert (one.client_id, one.client_host) == ("test", "/127.0.0.1")
    assert (one.member_metadata, one.member_assignment) == (b"subscription", b"half")


def test_a_group_that_rebalances_is_described_with_its_last_assignments(harness):
    leader, _ = stable_pair(harness)
    leader.start_join()
    group = described(harness)
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert {one.member_assignment for one in group.members} == {b"half", b"other half"}


def test_a_group_of_offsets_alone_is_empty(harness):
    find_coordinator(harness)
    simple_commit(harness)
    group = described(harness, "simple")
    assert (group.error_code, group.group_state, group.members) == (0, "Empty", [])


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_is_not_there_is_dead(harness, version):
    find_coordinator(harness)
    group = described(harness, "missing", version)
    assert group.group_state == "Dead"
    assert group.error_code == (GroupIdNotFoundError.code if version >= 6 else 0)


def test_the_group_without_an_id_may_be_asked_for(harness):
    find_coordinator(harness)
    assert described(harness, "").error_code == GroupIdNotFoundError.code


@pytest.mark.parametrize("version", range(3))
def test_an_empty_group_is_deleted_with_its_offsets(harness, version):
    find_coordinator(harness)
    harness.create_topic("orders")
    member = GroupMember(harness)
    member.join()
    member.start_sync({member.member_id: b"all"})
    assert member.commit(5) == 0
    member.leave()
    assert deleted(harness, version=version) == 0
    assert listed(harness) == {}
    assert harness.node.coordinator.offsets.get("group", TopicPartition("orders", 0)) is None


def test_a_deleted_group_stays_deleted_over_a_restart(harness):
    find_coordinator(harness)
    simple_commit(harness)
    assert deleted(harness, "simple") == 0
    harness.restart()
    assert listed(harness) == {}
    assert deleted(harness, "simple") == GroupIdNotFoundError.code


def test_a_group_with_members_is_not_deleted(harness):
    leader, _ = stable_pair(harness)
    assert deleted(harness) == GroupNotEmptyError.code
    assert leader.heartbeat() == 0


def test_a_group_that_never_was_is_not_deleted(harness):
    find_coordinator(harness)
    assert deleted(harness, "missing") == GroupIdNotFoundError.code
    assert deleted(harness, "") == GroupIdNotFoundError.code


def test_a_group_that_is_named_twice_is_deleted_once(harness):
    find_coordinator(harness)
    simple_commit(harness)
    request = DeleteGroupsRequest(groups_names=["simple", "missing", "simple"])
    results = {one.group_id: one.error_code for one in harness.ask(request).results}
    assert results == {"simple": 0, "missing": GroupIdNotFoundError.code}
    assert len(harness.ask(request).results) == 2
