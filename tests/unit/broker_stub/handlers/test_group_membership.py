"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup on the wire, in every version."""

import pytest

from pyclient.error_codes import (
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.delete_groups import DeleteGroupsRequest
from pyclient.protocol.messages.describe_groups import DescribeGroupsRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pyclient.protocol.messages.offset_delete import OffsetDeleteRequest
from pyclient.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from pyclient.protocol.messages.sync_group import SyncGroupRequest
from tests.support.group_member import (
    REBALANCE_MS,
    SESSION_MS,
    GroupMember,
    find_coordinator,
    stable_pair,
)
from tests.support.node_harness import NodeHarness


@pytest.mark.parametrize("version", range(10))
def test_members_join_in_every_version(harness, version):
    leader, follower = stable_pair(harness, join=version)
    assert leader.generation_id == follower.generation_id == 2
    assert leader.heartbeat() == follower.heartbeat() == 0


@pytest.mark.parametrize("version", range(10))
def test_the_leader_is_told_of_all_members_and_the_others_of_none(harness, version):
    leader, follower = stable_pair(harness, join=version)
    pending = leader.start_join()  # a leader's join in a stable group: it wants a rebalance
    told = follower.joined(follower.start_join())
    led = leader.joined(pending)
    assert (led.leader, led.protocol_name) == (leader.member_id, "range")
    assert {one.member_id for one in led.members} == {leader.member_id, follower.member_id}
    assert {one.metadata for one in led.members} == {b"subscription"}
    assert told.leader == leader.member_id
    assert told.members == []
    assert led.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", range(4, 10))
def test_a_new_member_is_given_an_id_to_come_back_with(harness, version):
    find_coordinator(harness)
    member = GroupMember(harness, join=version)
    refused = member.start_join().response
    assert refused.error_code == MemberIdRequiredError.code
    assert refused.member_id.startswith("test-")  # the client's id
    member.member_id = refused.member_id
    assert member.joined(member.start_join()).member_id == refused.member_id


@pytest.mark.parametrize("version", range(4))
def test_an_old_client_joins_at_once(harness, version):
    find_coordinator(harness)
    member = GroupMember(harness, join=version)
    assert member.joined(member.start_join()).generation_id == 1


@pytest.mark.parametrize("version", range(6))
def test_members_sync_in_every_version(harness, version):
    leader, follower = stable_pair(harness, sync=version)
    response = follower.start_sync().response
    assert response.assignment == b"other half"
    named = ("consumer", "range") if version >= 5 else (None, None)
    assert (response.protocol_type, response.protocol_name) == named
    assert leader.start_sync().response.assignment == b"half"


def test_a_sync_for_another_assignor_is_refused(harness):
    leader, _ = stable_pair(harness)
    request = SyncGroupRequest(
        group_id="group",
        generation_id=leader.generation_id,
        member_id=leader.member_id,
        protocol_type="consumer",
        protocol_name="roundrobin",
    )
    assert harness.ask(request, 5).error_code == InconsistentGroupProtocolError.code


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_a_sync_that_does_not_name_its_protocol_is_refused(harness, missing):
    find_coordinator(harness)
    member = GroupMember(harness)
    member.join()
    named = {"protocol_type": "consumer", "protocol_name": "range", missing: None}
    request = SyncGroupRequest(
        group_id="group", generation_id=1, member_id=member.member_id, **named
    )
    assert harness.ask(request, 5).error_code == InconsistentGroupProtocolError.code
    assert member.start_sync({member.member_id: b"all"}).response.assignment == b"all"


@pytest.mark.parametrize("version", range(5))
def test_heartbeats_tell_of_a_rebalance_in_every_version(harness, version):
    leader, follower = stable_pair(harness, heartbeat=version)
    assert follower.heartbeat() == 0
    leader.start_join()
    assert follower.heartbeat() == RebalanceInProgressError.code
    follower.generation_id = 1
    assert follower.heartbeat() == IllegalGenerationError.code
    follower.member_id = "stranger"
    assert follower.heartbeat() == UnknownMemberIdError.code


@pytest.mark.parametrize("version", range(6))
def test_a_member_that_leaves_is_gone_at_once(harness, version):
    leader, follower = stable_pair(harness, leave=version)
    response = follower.leave()
    assert response.error_code == 0
    if version >= 3:
        assert [(one.member_id, one.error_code) for one in response.members] == [
            (follower.member_id, 0)
        ]
    assert leader.heartbeat() == RebalanceInProgressError.code
    (left,) = leader.joined(leader.start_join()).members
    assert left.member_id == leader.member_id
    assert follower.heartbeat() == UnknownMemberIdError.code


@pytest.mark.parametrize("version", range(6))
def test_a_stranger_cannot_leave(harness, version):
    stable_pair(harness)
    stranger = GroupMember(harness, leave=version)
    stranger.member_id = "stranger"
    response = stranger.leave()
    unknown = UnknownMemberIdError.code
    if version < 3:
        assert response.error_code == unknown
    else:
        assert response.error_code == 0
        assert [one.error_code for one in response.members] == [unknown]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_several_members_leave_at_once_static_ones_by_their_instance(harness, version):
    find_coordinator(harness)
    static = GroupMember(harness, instance_id="i")
    static.join()
    static.start_sync({static.member_id: b"everything"})
    request = LeaveGroupRequest(
        group_id="group",
        members=[
            MemberIdentity(member_id="", group_instance_id="i"),
            MemberIdentity(member_id="stranger"),
            MemberIdentity(member_id="", group_instance_id="unknown"),
        ],
    )
    response = harness.ask(request, version)
    unknown = UnknownMemberIdError.code
    assert [one.error_code for one in response.members] == [0, unknown, unknown]
    assert static.heartbeat() == UnknownMemberIdError.code


def test_a_member_without_heartbeats_is_gone_after_its_session(harness):
    leader, follower = stable_pair(harness)
    harness.advance(SESSION_MS - 1)
    assert leader.heartbeat() == 0
    harness.advance(1)
    assert leader.heartbeat() == RebalanceInProgressError.code
    assert follower.heartbeat() == UnknownMemberIdError.code


def test_a_client_that_hangs_up_while_it_waits_holds_the_others_up_for_a_session(harness):
    leader, follower = stable_pair(harness)
    newcomer = GroupMember(harness, join=3)
    newcomer.start_join().parked.abandon()
    pending = leader.start_join()
    follower.start_join()
    assert not pending.arrived
    harness.advance(SESSION_MS)
    assert len(leader.joined(pending).members) == 2


def test_a_member_that_does_not_rejoin_in_time_is_left_out(harness):
    leader, follower = stable_pair(harness)
    pending = leader.start_join()
    for _ in range(REBALANCE_MS // 5_000 - 1):
        assert follower.heartbeat() == RebalanceInProgressError.code
        harness.advance(5_000)
    assert not pending.arrived
    harness.advance(5_000)
    assert [one.member_id for one in leader.joined(pending).members] == [leader.member_id]


@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_member_comes_back_without_a_rebalance(harness, version):
    find_coordinator(harness)
    old = GroupMember(harness, join=version, instance_id="i")
    old.join()
    old.start_sync({old.member_id: b"everything"})
    new = GroupMember(harness, join=version, instance_id="i")
    response = new.join()
    assert new.generation_id == old.generation_id
    assert new.member_id != old.member_id
    assert response.skip_assignment == (version >= 9)
    assert (response.leader == new.member_id) == (version >= 9)
    assert new.start_sync().response.assignment == b"everything"
    assert old.heartbeat() == FencedInstanceIdError.code


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize("session_ms", [5999, 1_800_001])
def test_a_session_timeout_that_is_not_allowed_is_refused(harness, version, session_ms):
    find_coordinator(harness)
    response = GroupMember(harness, join=version).start_join(session_timeout_ms=session_ms).response
    assert response.error_code == InvalidSessionTimeoutError.code


def test_the_limits_of_session_timeouts_can_be_set(tmp_path):
    harness = NodeHarness(tmp_path, group_min_session_timeout_ms=100)
    find_coordinator(harness)
    member = GroupMember(harness, join=3)
    assert member.start_join(session_timeout_ms=100).response.error_code == 0
    harness.node.abandon()


def test_a_new_group_waits_for_its_members_if_it_is_told_to(tmp_path):
    harness = NodeHarness(tmp_path, group_initial_rebalance_delay_ms=3000)
    find_coordinator(harness)
    members = [GroupMember(harness, join=3) for _ in range(3)]
    pending = [member.start_join() for member in members]
    for _ in range(2):
        assert not any(one.arrived for one in pending)
        harness.advance(3000)
    assert {one.response.generation_id for one in pending} == {1}
    harness.node.abandon()


def test_members_must_have_an_assignor_in_common(harness):
    find_coordinator(harness)
    GroupMember(harness, join=3).join("range", "roundrobin")
    refused = GroupMember(harness, join=3).start_join("sticky").response
    assert refused.error_code == InconsistentGroupProtocolError.code
    other_kind = GroupMember(harness, join=3).start_join(protocol_type="connect").response
    assert other_kind.error_code == InconsistentGroupProtocolError.code


@pytest.mark.parametrize("version", range(10))
def test_a_group_needs_an_id(harness, version):
    find_coordinator(harness)
    member = GroupMember(harness, join=version, group_id="")
    assert member.start_join().response.error_code == InvalidGroupIdError.code


@pytest.mark.parametrize("version", range(6))
def test_who_leaves_a_group_without_an_id_is_told_so(harness, version):
    find_coordinator(harness)
    response = GroupMember(harness, leave=version, group_id="").leave()
    assert response.error_code == InvalidGroupIdError.code


def test_a_group_that_nobody_joined_has_no_members(harness):
    find_coordinator(harness)
    member = GroupMember(harness)
    member.member_id = "stranger"
    assert member.heartbeat() == UnknownMemberIdError.code
    assert member.start_sync().response.error_code == UnknownMemberIdError.code
    assert member.start_join().response.error_code == UnknownMemberIdError.code
    request = HeartbeatRequest(group_id="", generation_id=1, member_id="m")
    assert harness.ask(request).error_code == InvalidGroupIdError.code


def test_a_client_that_never_asked_for_the_coordinator_is_sent_to_ask(harness):
    harness.create_topic("orders")
    code = NotCoordinatorError.code
    assert GroupMember(harness, join=3).start_join().response.error_code == code
    member = GroupMember(harness)
    member.member_id, member.generation_id = "m", 1
    assert member.heartbeat() == code
    assert member.start_sync().response.error_code == code
    assert member.leave().error_code == code
    assert member.commit(5) == code
    (described,) = harness.ask(DescribeGroupsRequest(groups=["group"])).groups
    assert (described.error_code, described.group_state) == (code, "")
    assert harness.ask(DeleteGroupsRequest(groups_names=["group"])).results[0].error_code == code
    assert harness.ask(OffsetDeleteRequest(group_id="group")).error_code == code
    wanted = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="group", topics=None)])
    assert harness.ask(wanted, 9).groups[0].error_code == code


def test_a_join_that_is_refused_leaves_no_group_behind(harness):
    find_coordinator(harness)
    member = GroupMember(harness, join=3)
    refused = member.start_join(protocol_type="").response
    assert refused.error_code == InconsistentGroupProtocolError.code
    with pytest.raises(UnknownMemberIdError):
        harness.node.coordinator.group("group")
