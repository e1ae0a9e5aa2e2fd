"""Faults and requests by group and by member."""

import pytest

from broker_stub.request import HANG_UP
from broker_stub.testing import Always, Next
from pyclient.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    RebalanceInProgressError,
)
from pyclient.protocol.messages.delete_groups import DeleteGroupsRequest
from pyclient.protocol.messages.describe_groups import DescribeGroupsRequest
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.leave_group import LeaveGroupRequest
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.messages.sync_group import SyncGroupRequest
from tests.support.group_member import GroupMember, find_coordinator, stable_pair
from tests.support.node_harness import NodeHarness
from tests.support.offset_requests import offset_fetch_request


@pytest.fixture(autouse=True)
def orders(harness: NodeHarness) -> None:
    find_coordinator(harness)
    harness.create_topic("orders")


def member_of(harness: NodeHarness, group_id: str, instance_id: str | None = None) -> GroupMember:
    """A stable group of one."""
    member = GroupMember(harness, group_id=group_id, instance_id=instance_id)
    member.join()
    assert member.start_sync({member.member_id: b"all"}).response.error_code == 0
    return member


COORDINATOR_ERRORS = (
    NotCoordinatorError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
)


@pytest.mark.parametrize("error", COORDINATOR_ERRORS)
def test_a_group_is_told_to_look_for_its_coordinator_and_others_are_not(harness, faults, error):
    mine, others = member_of(harness, "mine"), member_of(harness, "others")
    fault = faults.fail(HeartbeatRequest, error, Always(), group="mine")
    faults.fail(OffsetCommitRequest, error, Always(), group="mine")
    assert (mine.heartbeat(), others.heartbeat()) == (error.code, 0)
    assert (mine.commit(5), others.commit(5)) == (error.code, 0)
    assert fault.hits == 1
    fault.cancel()
    assert mine.heartbeat() == 0


def test_a_fault_of_one_member_leaves_the_others_alone(harness, faults):
    leader, follower = stable_pair(harness)
    fault = faults.fail(
        HeartbeatRequest, RebalanceInProgressError, Always(), member=follower.member_id
    )
    assert (leader.heartbeat(), follower.heartbeat()) == (0, RebalanceInProgressError.code)
    assert fault.hits == 1


def test_a_static_member_may_be_named_by_its_instance_id(harness, faults):
    member = member_of(harness, "group", instance_id="pod-1")
    faults.fail_next(HeartbeatRequest, NotCoordinatorError, member="pod-1", group="group")
    assert member.heartbeat() == NotCoordinatorError.code
    faults.fail_next(LeaveGroupRequest, NotCoordinatorError, member="pod-1")
    assert member.leave().error_code == NotCoordinatorError.code
    assert member.heartbeat() == 0


def test_a_lost_sync_response_is_asked_for_again(harness, faults):
    member = GroupMember(harness)
    member.join()
    faults.drop(SyncGroupRequest, Next(), after=True, group="group")
    lost = member.start_sync({member.member_id: b"all"})
    assert lost.reply is HANG_UP
    assert member.start_sync().response.assignment == b"all"  # the group is stable


def test_a_member_that_stalls_is_expelled_and_the_rest_goes_on(harness, faults):
    leader, follower = stable_pair(harness)
    faults.delay(JoinGroupRequest, 60_000, member=follower.member_id)
    joining = GroupMember(harness, join=3).start_join()
    rejoining = leader.start_join()
    stalled = follower.start_join()
    assert leader.joined(rejoining).generation_id == 3
    assert joining.arrived
    assert not stalled.arrived
    leader.start_sync({leader.member_id: b"all"})
    for _ in range(2):  # the follower got no answer, so it sends no heartbeats
        harness.advance(6_000)
        leader.heartbeat()
    members = [one.member_id for one in harness.node.coordinator.find("group").roster]
    assert follower.member_id not in members


@pytest.mark.parametrize(
    ("request_of", "codes_of"),
    [
        (
            lambda ids: DescribeGroupsRequest(groups=ids),
            lambda response: {one.group_id: one.error_code for one in response.groups},
        ),
        (
            lambda ids: FindCoordinatorRequest(coordinator_keys=ids),
            lambda response: {one.key: one.error_code for one in response.coordinators},
        ),
        (
            lambda ids: OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=one, topics=None) for one in ids]
            ),
            lambda response: {one.group_id: one.error_code for one in response.groups},
        ),
    ],
    ids=["DescribeGroups", "FindCoordinator", "OffsetFetch"],
)
@pytest.mark.parametrize("after", [False, True])
def test_of_several_groups_only_one_part_fails(harness, faults, request_of, codes_of, after):
    for group_id in ("a", "b", "c"):
        member_of(harness, group_id)
    api = type(request_of(["a"]))
    code = CoordinatorLoadInProgressError.code
    faults.fail_next(api, CoordinatorLoadInProgressError, group="b", after=after)
    faults.fail_next(api, NotCoordinatorError, group="c", after=after)
    assert codes_of(harness.ask(request_of(["a", "b", "c"]))) == {
        "a": 0,
        "b": code,
        "c": NotCoordinatorError.code,
    }
    assert codes_of(harness.ask(request_of(["a", "b", "c"]))) == {"a": 0, "b": 0, "c": 0}


def test_a_group_whose_deletion_fails_is_still_there(harness, faults):
    for group_id in ("a", "b"):
        GroupMember(harness, group_id=group_id).commit(5)
    faults.fail_next(DeleteGroupsRequest, NotCoordinatorError, group="b")
    response = harness.ask(DeleteGroupsRequest(groups_names=["a", "b"]))
    assert {one.group_id: one.error_code for one in response.results} == {"a": 0, "b": 16}
    assert [one.group_id for one in harness.node.coordinator.groups()] == ["b"]


def test_old_versions_that_name_one_group_fail_as_a_whole(harness, faults):
    faults.fail(OffsetFetchRequest, NotCoordinatorError, Always(), group="mine")
    faults.fail(FindCoordinatorRequest, CoordinatorNotAvailableError, Always(), group="mine")
    for group_id, codes in (("mine", (16, 15)), ("others", (0, 0))):
        fetched = harness.ask(offset_fetch_request(group_id, {"orders": [0]}, 7), 7)
        found = harness.ask(FindCoordinatorRequest(key=group_id), 3)
        assert (fetched.error_code, found.error_code) == codes


def test_transactional_ids_are_not_groups(harness, faults):
    fault = faults.fail(FindCoordinatorRequest, NotCoordinatorError, Always(), group="same-name")
    harness.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["same-name"]))
    assert fault.hits == 0


def test_a_group_and_a_topic_limit_a_fault_together(harness, faults):
    harness.create_topic("payments")
    mine, others = member_of(harness, "mine"), member_of(harness, "others")
    faults.fail(OffsetCommitRequest, NotCoordinatorError, Always(), group="mine", topic="orders")
    assert [mine.commit(5), others.commit(5)] == [16, 0]
    assert mine.commit(5, topic="payments") == 0


@pytest.mark.parametrize(
    ("api", "scope", "error"),
    [
        (ProduceRequest, {"group": "g"}, "can't be limited to one group"),
        (DescribeGroupsRequest, {"member": "m"}, "can't be limited to one member"),
        (HeartbeatRequest, {"member": ""}, "no id"),
    ],
)
def test_a_fault_that_could_never_apply_is_refused(faults, api, scope, error):
    with pytest.raises(ValueError, match=error):
        faults.fail_next(api, NotCoordinatorError, **scope)


def test_a_group_is_named_by_a_str(faults):
    with pytest.raises(TypeError, match="named by a str"):
        faults.fail_next(HeartbeatRequest, NotCoordinatorError, group=7)


def test_requests_are_counted_by_group_and_by_member(harness, requests):
    mine, others = member_of(harness, "mine"), member_of(harness, "others", instance_id="pod-1")
    for _ in range(3):
        mine.heartbeat()
    others.heartbeat()
    assert requests.count(HeartbeatRequest, group="mine") == 3
    assert requests.count(HeartbeatRequest, member=mine.member_id) == 3
    assert requests.count(HeartbeatRequest, member="pod-1") == 1
    assert requests.count(HeartbeatRequest, group="mine", member="pod-1") == 0
    assert requests.count(group="others") == 3  # join, sync and heartbeat
    assert [one.group_id for one in requests.of(JoinGroupRequest, group="others")] == ["others"]
    (received,) = requests.received(HeartbeatRequest, group="others")
    assert received.client_id == "test"
