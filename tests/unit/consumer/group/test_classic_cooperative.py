"""The cooperative protocol (KIP-429): a member keeps its partitions while the group rebalances."""

import re

import pytest

from pyclient.consumer.group.assignors import Assignment
from pyclient.consumer.group.consumer_protocol import decode_subscription, encode_assignment
from pyclient.consumer.group.member_state import MemberState
from pyclient.consumer.offsets.commit import Committer
from pyclient.consumer.pending import Pending
from pyclient.errors import (
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from pyclient.types import TopicPartition
from tests.unit.consumer.group.conftest import GroupWorld, joined, synced

COOPERATIVE = "cooperative-sticky"


def assigned(world):
    return sorted(number for _, number in world.subscription.assigned())


def subscription_of(request, index=0):
    return decode_subscription(request.protocols[index].metadata, None)


def rebalance(world, *numbers, generation):
    """From a heartbeat that says so to the end of the caller's step: the join request."""
    world.heartbeat(RebalanceInProgressError.code)
    join = world.sent(JoinGroupRequest)
    world.answer(join, joined(generation=generation, protocol=COOPERATIVE))
    world.answer(world.sent(SyncGroupRequest), synced(*numbers))
    world.call_poll()
    return join.request


@pytest.fixture
def world():
    world = GroupWorld(assignors=[COOPERATIVE])
    world.subscribe("orders")
    return world


@pytest.fixture
def member(world):
    """It owns partitions 0 and 1, in generation 1."""
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined(protocol=COOPERATIVE))
    world.answer(world.sent(SyncGroupRequest), synced(0, 1))
    world.call_poll()
    world.listener.calls.clear()
    return world


def test_a_member_keeps_its_partitions_and_tells_the_leader_of_them(member):
    member.heartbeat(RebalanceInProgressError.code)
    told = subscription_of(member.sent(JoinGroupRequest).request)
    assert told.owned_partitions == {"orders": (0, 1)}
    assert told.generation_id == 1
    assert told.user_data == b"\0\0\0\1"  # the generation, for older leaders
    assert assigned(member) == [0, 1]
    assert member.commits == 0
    assert member.listener.calls == []


def test_a_new_member_owns_nothing(world):
    world.call_poll()
    told = subscription_of(world.sent(JoinGroupRequest).request)
    assert (told.owned_partitions, told.generation_id) == ({}, -1)


def test_what_is_left_out_is_committed_revoked_and_the_member_joins_again(member):
    rebalance(member, 1, generation=2)
    assert member.commits == 1
    assert member.listener.calls == [("revoked", [0]), ("assigned", [])]
    assert assigned(member) == [1]
    again = member.sent(JoinGroupRequest).request
    assert subscription_of(again).owned_partitions == {"orders": (1,)}
    assert subscription_of(again).generation_id == 2
    assert "revoked" in again.reason


def test_a_rebalance_that_takes_nothing_away_is_the_last_one(member):
    rebalance(member, 0, 1, 2, generation=2)
    assert member.listener.calls == [("assigned", [2])]
    assert member.commits == 0
    assert member.member.state is MemberState.STABLE
    assert member.poll() == []


def test_the_commit_before_a_revocation_comes_from_the_new_generation(member):
    member.commit = Pending(lambda: None)
    rebalance(member, 1, generation=2)
    assert member.member.state is MemberState.ASSIGNING
    assert member.member.committer() == Committer(2, "me", None)
    member.commit.complete(None)
    member.call_poll()
    assert assigned(member) == [1]


def test_no_commit_is_possible_while_the_member_joins(member):
    member.heartbeat(RebalanceInProgressError.code)
    member.sent(JoinGroupRequest)
    assert isinstance(member.member.committer(), RebalanceInProgressError)


def test_a_commit_of_the_last_generation_that_comes_too_late_is_no_loss(member):
    member.heartbeat(RebalanceInProgressError.code)
    member.answer(member.sent(JoinGroupRequest), joined(generation=2, protocol=COOPERATIVE))
    member.sent(SyncGroupRequest)
    late = Committer(1, "me", None)
    verdict = member.member.on_commit_error(IllegalGenerationError(), late)
    assert isinstance(verdict, RebalanceInProgressError)
    assert member.member.state is MemberState.SYNCING


def test_partitions_of_topics_that_are_not_subscribed_to_any_more_go_before_the_join(member):
    member.subscribe("bills")
    member.poll()
    assert member.member.state is MemberState.PREPARING
    member.call_poll()
    assert member.listener.calls == [("revoked", [0, 1])]
    told = subscription_of(member.sent(JoinGroupRequest).request)
    assert (told.topics, told.owned_partitions) == (("bills",), {})


def test_a_rebalance_during_the_sync_keeps_the_partitions(member):
    member.heartbeat(RebalanceInProgressError.code)
    member.answer(member.sent(JoinGroupRequest), joined(generation=2, protocol=COOPERATIVE))
    again = SyncGroupResponse(error_code=RebalanceInProgressError.code)
    member.answer(member.sent(SyncGroupRequest), again)
    told = subscription_of(member.sent(JoinGroupRequest).request)
    assert told.owned_partitions == {"orders": (0, 1)}
    assert assigned(member) == [0, 1]


@pytest.mark.parametrize("error", [UnknownMemberIdError, IllegalGenerationError])
def test_a_member_that_was_removed_while_it_joined_loses_its_partitions(member, error):
    member.heartbeat(RebalanceInProgressError.code)
    join = member.sent(JoinGroupRequest)
    member.answer(join, JoinGroupResponse(error_code=error.code))
    member.after(100).poll()
    assert member.member.state is MemberState.FENCED
    member.call_poll()
    assert member.listener.calls == [("lost", [0, 1])]
    assert subscription_of(member.sent(JoinGroupRequest).request).owned_partitions == {}


def test_a_member_that_is_removed_during_the_commit_loses_everything(member):
    member.commit = Pending(lambda: None)
    rebalance(member, 1, generation=2)
    member.heartbeat(UnknownMemberIdError.code)
    member.call_poll()
    assert member.listener.calls == [("lost", [0, 1])]
    assert assigned(member) == []


def test_beside_an_eager_assignor_it_is_eager():
    world = GroupWorld(assignors=["range", COOPERATIVE])
    world.subscribe("orders")
    world.join(0, 1)
    world.heartbeat(RebalanceInProgressError.code)
    assert world.poll() == []
    world.call_poll()
    assert world.listener.calls[-1] == ("revoked", [0, 1])
    request = world.sent(JoinGroupRequest).request
    assert [protocol.name for protocol in request.protocols] == ["range", COOPERATIVE]
    assert subscription_of(request, 1).owned_partitions == {}


def test_the_program_may_ask_for_a_rebalance(member):
    member.member.enforce_rebalance("the weights have changed")
    assert member.sent(JoinGroupRequest).request.reason == "the weights have changed"


def test_the_rack_is_told():
    world = GroupWorld(assignors=[COOPERATIVE], rack_id="eu-1")
    world.subscribe("orders")
    world.call_poll()
    assert subscription_of(world.sent(JoinGroupRequest).request).rack_id == "eu-1"


def test_a_topic_of_a_pattern_that_vanishes_is_revoked_before_the_join():
    world = GroupWorld([COOPERATIVE])
    world.subscription.subscribe_pattern(re.compile("orders|bills"), world.listener)
    world.member.on_subscription()
    world.call_poll()
    world.interest.on_metadata(world.cluster.describe({"orders": [1], "bills": [1]}))
    world.answer(world.sent(JoinGroupRequest), joined(protocol=COOPERATIVE))
    both = encode_assignment(Assignment({"orders": (0,), "bills": (0,)}))
    world.answer(world.sent(SyncGroupRequest), SyncGroupResponse(assignment=both))
    world.call_poll()
    snapshot = world.cluster.describe({"orders": [1]})
    world.interest.on_metadata(snapshot)
    world.member.on_metadata(snapshot)
    world.poll()
    world.call_poll()
    assert world.subscription.assigned() == {TopicPartition("orders", 0)}
    again = joined(protocol=COOPERATIVE, generation=2)
    world.answer(world.sent(JoinGroupRequest), again)
    world.answer(world.sent(SyncGroupRequest), synced(0))
    world.call_poll()
    assert world.member.state is MemberState.STABLE  # else it would join once more
