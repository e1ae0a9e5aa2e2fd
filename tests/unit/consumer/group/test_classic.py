"""The classic protocol: life in a group, and the ways out of it."""

import re

import pytest

from pyclient.consumer.group.consumer_protocol import decode_subscription
from pyclient.consumer.group.member_state import TRANSITIONS, MemberState
from pyclient.consumer.offsets.commit import Committer
from pyclient.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    IllegalGenerationError,
    KafkaConnectionError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupRequest
from pyclient.types import ConsumerGroupMetadata, TopicPartition
from pyclient.types import MemberState as PublicState
from tests.support.consumer_parts import BACKOFF_MS
from tests.unit.consumer.group.conftest import COORDINATOR, GroupWorld, joined, synced


def assigned(world):
    return sorted(number for _, number in world.subscription.assigned())


# --- heartbeats ----------------------------------------------------------------------------------


def test_a_member_sends_heartbeats_and_one_at_a_time(world):
    world.join(0)
    assert world.poll() == []
    first = world.after(3_000).sent(HeartbeatRequest)
    assert (first.request.generation_id, first.request.member_id) == (1, "me")
    assert world.after(3_000).poll() == []
    world.answer(first, KafkaConnectionError())
    assert world.after(BACKOFF_MS).sent(HeartbeatRequest)  # the coordinator was found again


def test_heartbeats_go_on_while_the_caller_is_busy_with_a_rebalance(world):
    world.join(0)
    world.heartbeat(RebalanceInProgressError.code)
    world.poll()
    assert world.member.state is MemberState.PREPARING
    world.heartbeat(RebalanceInProgressError.code)
    assert world.member.state is MemberState.PREPARING


def test_a_silent_coordinator_is_given_up_when_the_session_is_over(world):
    world.join(0)
    world.after(3_000).sent(HeartbeatRequest)
    world.after(45_000).poll()
    assert world.coordinator.connection is None
    assert world.member.state is MemberState.STABLE


def test_the_connection_of_a_silent_coordinator_is_not_used_again(world):
    world.join(0)
    world.after(3_000).sent(HeartbeatRequest)
    world.after(45_000).poll()
    assert world.nodes.disconnected == [COORDINATOR]


def test_an_idle_member_asks_to_be_polled_for_its_next_heartbeat_only(world):
    world.join(0)
    result = world.member.poll(world.now_ms)
    assert result.next_poll_ms == world.now_ms + 3_000


def test_a_member_without_a_coordinator_does_not_spin(world):
    world.join(0)
    world.coordinator.forget("test", world.now_ms)
    world.after(4_000)
    assert world.member.poll(world.now_ms).next_poll_ms > world.now_ms


def test_one_that_waits_to_join_does_not_spin_either(world):
    world.call_poll()
    assert world.member.poll(1_000.0).next_poll_ms > 1_000.0


# --- rebalances ----------------------------------------------------------------------------------


def test_a_rebalance_takes_all_partitions_first_and_the_caller_commits_them(world):
    world.join(0, 1)
    world.heartbeat(RebalanceInProgressError.code)
    assert world.poll() == []  # the caller's thread comes first
    world.call_poll()
    assert world.commits == 1
    assert world.listener.calls[-1] == ("revoked", [0, 1])
    assert assigned(world) == []
    join = world.sent(JoinGroupRequest)
    assert join.request.member_id == "me"
    world.answer(join, joined(generation=2))
    world.answer(world.sent(SyncGroupRequest), synced(1))
    world.call_poll()
    assert assigned(world) == [1]
    assert world.listener.calls[-1] == ("assigned", [1])


def test_a_listener_that_raises_does_not_stop_the_rebalance(world):
    world.join(0)
    world.heartbeat(RebalanceInProgressError.code)
    world.poll()
    world.listener.raises = ValueError("mine")
    with pytest.raises(ValueError, match="mine"):
        world.call_poll()
    assert assigned(world) == []
    world.sent(JoinGroupRequest)


def test_other_topics_make_the_member_join_again(world):
    world.join(0)
    world.subscribe("bills")
    world.poll()
    world.call_poll()
    request = world.sent(JoinGroupRequest).request
    assert decode_subscription(request.protocols[0].metadata, None).topics == ("bills",)


def test_topics_that_change_during_a_rebalance_cause_the_next_one(world):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined())
    sync = world.sent(SyncGroupRequest)
    world.subscribe("orders", "bills")
    world.answer(sync, synced(0))
    world.call_poll()
    world.poll()
    assert world.member.state is MemberState.PREPARING


def test_the_leader_joins_again_when_partitions_come(world):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined(leader="me", members=[("me", ("orders",))]))
    world.answer(world.sent(SyncGroupRequest), synced(0, 1, 2))
    world.call_poll()
    world.member.on_metadata(world.cluster.describe({"orders": [1, 1, 1]}))
    assert world.member.state is MemberState.STABLE
    world.member.on_metadata(world.cluster.describe({"orders": [1, 1, 1, 1]}))
    world.poll()
    assert world.member.state is MemberState.PREPARING


def test_a_follower_leaves_that_to_the_leader(world):
    world.join(0)
    world.member.on_metadata(world.cluster.describe({"orders": [1] * 9}))
    assert world.member.state is MemberState.STABLE


def test_a_pattern_joins_with_the_topics_that_match_and_again_when_they_change():
    world = GroupWorld()
    world.subscription.subscribe_pattern(re.compile("ord"), world.listener)
    world.member.on_subscription()
    world.call_poll()
    assert world.cluster.topics is None
    assert world.poll() == []  # not before all topics are listed
    world.interest.on_metadata(world.cluster.describe({"orders": [1], "bills": [1]}))
    request = world.sent(JoinGroupRequest)
    assert decode_subscription(request.request.protocols[0].metadata, None).topics == ("orders",)
    world.answer(request, joined())
    world.answer(world.sent(SyncGroupRequest), synced(0))
    world.call_poll()
    snapshot = world.cluster.describe({"orders": [1], "ordinary": [1]})
    world.interest.on_metadata(snapshot)
    world.member.on_metadata(snapshot)
    world.poll()
    assert world.member.state is MemberState.PREPARING


# --- losing the membership -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "member_id"), [(UnknownMemberIdError, ""), (IllegalGenerationError, "me")]
)
def test_a_member_that_was_removed_loses_its_partitions_and_joins_again(world, error, member_id):
    world.join(0, 1)
    world.heartbeat(error.code)
    assert world.member.state is MemberState.FENCED
    assert world.poll() == []
    world.call_poll()
    assert world.commits == 0  # it would be refused
    assert world.listener.calls[-1] == ("lost", [0, 1])
    assert assigned(world) == []
    assert world.sent(JoinGroupRequest).request.member_id == member_id


def test_an_instance_that_took_the_place_of_this_one_is_an_error_for_the_program():
    world = GroupWorld(group_instance_id="i")
    world.subscribe("orders")
    world.join(0)
    world.heartbeat(FencedInstanceIdError.code)
    with pytest.raises(FencedInstanceIdError):
        world.call_poll()
    assert world.listener.calls[-1] == ("lost", [0])


def test_an_assignment_that_nobody_took_yet_is_void_when_the_membership_is_lost(world):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined())
    world.answer(world.sent(SyncGroupRequest), synced(0))
    world.heartbeat(UnknownMemberIdError.code)
    world.call_poll()
    assert assigned(world) == []
    assert world.listener.calls == []
    world.sent(JoinGroupRequest)


def test_a_late_answer_to_an_earlier_join_changes_nothing(world):
    world.call_poll()
    old = world.sent(JoinGroupRequest)
    world.member.leave("test")
    world.subscribe("orders")
    world.poll()
    world.answer(old, joined(generation=9))
    assert world.member.metadata().generation_id == -1


def test_a_program_that_does_not_poll_leaves_the_group_and_is_back_by_its_next_poll(world, caplog):
    world.join(0)
    for _ in range(99):
        world.heartbeat()
    leave = next(
        unsent
        for unsent in world.after(3_000).poll()
        if isinstance(unsent.request, LeaveGroupRequest)
    )
    assert "max.poll.interval.ms" in leave.request.members[0].reason
    assert "max.poll.records" in caplog.text
    world.answer(leave, LeaveGroupResponse())
    assert world.after(10_000).poll() == []
    world.call_poll()
    assert world.listener.calls[-1] == ("lost", [0])
    assert world.sent(JoinGroupRequest).request.member_id == ""


# --- leaving -------------------------------------------------------------------------------------


def test_leaving_tells_the_group(world):
    world.join(0)
    world.member.leave("enough")
    assert not world.member.has_left()
    leave = world.sent(LeaveGroupRequest)
    (who,) = leave.request.members
    assert (who.member_id, who.reason) == ("me", "enough")
    world.answer(leave, LeaveGroupResponse())
    assert world.member.has_left()
    assert world.member.state is MemberState.LEFT
    assert world.after(10_000).poll() == []


@pytest.mark.parametrize(
    "outcome", [KafkaConnectionError(), LeaveGroupResponse(error_code=UnknownMemberIdError.code)]
)
def test_a_group_that_cannot_be_told_is_left_all_the_same(world, outcome):
    world.join(0)
    world.member.leave("enough")
    world.answer(world.sent(LeaveGroupRequest), outcome)
    assert world.member.has_left()


def test_the_connection_is_held_up_while_the_group_may_hold_back_an_answer(world):
    assert not world.coordinator.is_held_up
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined())
    assert world.coordinator.is_held_up
    world.answer(world.sent(SyncGroupRequest), synced(0))
    assert not world.coordinator.is_held_up


def test_leaving_does_not_wait_behind_a_join_that_the_group_holds_back(world):
    world.join(0)
    world.heartbeat(RebalanceInProgressError.code)
    world.poll()
    world.call_poll()
    world.sent(JoinGroupRequest)
    world.member.leave("enough")
    (leave,) = world.poll()
    assert isinstance(leave.request, LeaveGroupRequest)
    assert leave.node == 1  # the broker's first connection


def test_a_static_member_leaves_without_a_word():
    world = GroupWorld(group_instance_id="i")
    world.subscribe("orders")
    world.join(0)
    world.member.leave("restart")
    assert world.member.has_left()
    assert world.poll() == []


def test_a_step_that_the_caller_has_not_begun_is_cancelled_by_leaving(world):
    world.join(0)
    world.heartbeat(RebalanceInProgressError.code)
    world.poll()
    world.member.leave("enough")
    world.call_poll()
    assert world.listener.calls == [("assigned", [0])]


# --- commits -------------------------------------------------------------------------------------


def test_a_commit_comes_from_the_present_generation(world):
    world.join(0, generation=5)
    assert world.member.committer() == Committer(5, "me", None)


def test_a_commit_during_the_revocation_still_comes_from_the_old_generation(world):
    world.join(0, generation=5)
    world.heartbeat(RebalanceInProgressError.code)
    world.poll()
    assert world.member.committer() == Committer(5, "me", None)


def test_there_is_no_commit_between_two_generations(world):
    world.call_poll()
    world.sent(JoinGroupRequest)
    assert isinstance(world.member.committer(), RebalanceInProgressError)


def test_there_is_no_commit_without_membership(world):
    world.join(0)
    world.heartbeat(UnknownMemberIdError.code)
    assert isinstance(world.member.committer(), CommitFailedError)


def test_assigned_partitions_are_committed_by_nobody_in_particular():
    world = GroupWorld()
    world.subscription.assign_from_user([TopicPartition("orders", 0)])
    assert world.member.committer() == Committer()


def test_a_refused_commit_tells_that_the_membership_is_lost(world):
    world.join(0, generation=5)
    world.member.on_commit_error(UnknownMemberIdError(), Committer(4, "me", None))
    assert world.member.state is MemberState.STABLE
    world.member.on_commit_error(GroupAuthorizationError(), Committer(5, "me", None))
    assert world.inbox.is_empty
    world.member.on_commit_error(UnknownMemberIdError(), Committer(5, "me", None))
    assert world.member.state is MemberState.FENCED


def test_a_commit_of_an_instance_in_its_last_generation_is_not_fenced_but_late():
    world = GroupWorld(group_instance_id="i")
    world.subscribe("orders")
    world.join(0, generation=5)
    stale, present = Committer(4, "me", "i"), Committer(5, "me", "i")
    error = FencedInstanceIdError()
    assert isinstance(world.member.on_commit_error(error, stale), CommitFailedError)
    assert world.member.state is MemberState.STABLE
    assert world.member.on_commit_error(error, present) is error
    assert world.member.state is MemberState.FENCED


# --- what the program sees -----------------------------------------------------------------------


def test_metadata_shows_the_membership(world):
    assert world.member.metadata() == ConsumerGroupMetadata("g")
    world.join(0, generation=5)
    stable = ConsumerGroupMetadata("g", 5, "me", None, PublicState.STABLE)
    assert world.member.metadata() == stable
    world.heartbeat(RebalanceInProgressError.code)
    assert world.member.metadata().state == PublicState.REBALANCING


def test_every_state_has_a_way_on():
    assert TRANSITIONS.keys() == set(MemberState)
    reachable = {MemberState.LEFT}.union(*TRANSITIONS.values())
    assert reachable == set(MemberState)


def test_a_lost_member_cannot_commit_a_transactions_offsets_unchecked(world):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined())
    world.answer(world.sent(SyncGroupRequest), synced(0))
    world.call_poll()
    before = world.member.metadata()
    world.heartbeat(UnknownMemberIdError.code)
    lost = world.member.metadata()
    # With generation -1 and no member id the coordinator would check nothing.
    assert (lost.generation_id, lost.member_id) == (before.generation_id, before.member_id)
    assert lost.generation_id >= 0
    assert lost.state == PublicState.UNJOINED
