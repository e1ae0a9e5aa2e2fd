"""The classic protocol: the ways into a group, by answers of a scripted coordinator."""

import re

import pytest

from pyclient.consumer.group.consumer_protocol import decode_assignment, decode_subscription
from pyclient.consumer.group.member_state import MemberState
from pyclient.errors import (
    CoordinatorLoadInProgressError,
    GroupAuthorizationError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaConnectionError,
    KafkaError,
    MemberIdRequiredError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.consumer_parts import BACKOFF_MS
from tests.unit.consumer.group.conftest import COORDINATOR, GroupWorld, joined, synced


def assigned(world):
    return sorted(number for _, number in world.subscription.assigned())


# --- joining -------------------------------------------------------------------------------------


def handed_out(one):
    return decode_assignment(one.assignment).topic_partitions()


def test_a_consumer_joins_by_its_first_poll(world):
    assert world.poll() == []
    world.call_poll()
    request = world.sent(JoinGroupRequest).request
    assert (request.group_id, request.member_id, request.protocol_type) == ("g", "", "consumer")
    assert (request.session_timeout_ms, request.rebalance_timeout_ms) == (45_000, 300_000)
    assert [protocol.name for protocol in request.protocols] == ["range", "roundrobin"]
    assert decode_subscription(request.protocols[0].metadata, None).topics == ("orders",)
    assert world.member.state is MemberState.JOINING


def test_a_join_may_take_as_long_as_the_rebalance(world):
    world.call_poll()
    assert world.sent(JoinGroupRequest).timeout_ms == 305_000


def test_a_member_that_is_given_an_id_joins_again_by_it(world):
    world.call_poll()
    given = JoinGroupResponse(error_code=MemberIdRequiredError.code, member_id="me")
    world.answer(world.sent(JoinGroupRequest), given)
    assert world.sent(JoinGroupRequest).request.member_id == "me"


def test_a_follower_asks_for_its_share_and_takes_it_in_the_callers_poll(world):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined(generation=4))
    sync = world.sent(SyncGroupRequest)
    assert (sync.request.generation_id, sync.request.member_id) == (4, "me")
    assert (sync.request.protocol_name, sync.request.assignments) == ("range", [])
    world.answer(sync, synced(0, 2))
    assert world.member.state is MemberState.ASSIGNING
    assert assigned(world) == []
    world.call_poll()
    assert assigned(world) == [0, 2]
    assert world.listener.calls == [("assigned", [0, 2])]
    assert world.member.state is MemberState.STABLE
    assert world.member.figures().rebalance_total == 1


def test_the_leader_assigns_to_all_members(world):
    world.call_poll()
    members = [("me", ("orders",)), ("you", ("orders",))]
    world.answer(world.sent(JoinGroupRequest), joined(leader="me", members=members))
    sync = world.sent(SyncGroupRequest)
    shares = {
        one.member_id: [
            number for _, number in decode_assignment(one.assignment).topic_partitions()
        ]
        for one in sync.request.assignments
    }
    assert shares == {"me": [0, 1], "you": [2]}


def test_the_leader_waits_for_metadata_of_topics_that_only_others_read(world):
    world.call_poll()
    members = [("me", ("orders",)), ("you", ("bills",))]
    world.answer(world.sent(JoinGroupRequest), joined(leader="me", members=members))
    assert world.poll() == []
    assert world.cluster.topics == {"orders", "bills"}
    world.cluster.describe({"orders": [1, 1, 1], "bills": [1]})
    sync = world.sent(SyncGroupRequest)
    assert [
        len(decode_assignment(one.assignment).topic_partitions())
        for one in sync.request.assignments
    ] == [3, 1]


def test_the_leader_assigns_without_a_topic_that_does_not_exist(world):
    world.call_poll()
    members = [("me", ("orders",)), ("you", ("bills",))]
    world.answer(world.sent(JoinGroupRequest), joined(leader="me", members=members))
    assert world.poll() == []
    world.cluster.describe({"orders": [1, 1, 1]})  # a topic of an earlier generation was dropped
    assert world.poll() == []
    missing = {"bills": UnknownTopicOrPartitionError}
    world.cluster.describe({"orders": [1, 1, 1]}, errors=missing)
    sync = world.sent(SyncGroupRequest)
    assert [
        len(decode_assignment(one.assignment).topic_partitions())
        for one in sync.request.assignments
    ] == [3, 0]


def test_a_leader_that_is_back_within_its_session_assigns_nothing():
    world = GroupWorld(group_instance_id="i")
    world.subscribe("orders")
    world.call_poll()
    back = joined(leader="me", members=[("me", ("orders",))], skip_assignment=True)
    world.answer(world.sent(JoinGroupRequest), back)
    assert world.sent(SyncGroupRequest).request.assignments == []


def test_a_leader_that_is_back_is_not_outdated_by_the_metadata_of_other_members_topics():
    world = GroupWorld(group_instance_id="i")
    world.subscribe("orders")
    world.call_poll()
    members = [("me", ("orders",)), ("you", ("bills",))]
    back = joined(leader="me", members=members, skip_assignment=True)
    world.answer(world.sent(JoinGroupRequest), back)
    assert world.poll() == []
    world.cluster.describe({"orders": [1, 1, 1], "bills": [1]})
    sync = world.sent(SyncGroupRequest)
    assert sync.request.assignments == []
    world.answer(sync, synced(0, 1, 2))
    world.call_poll()
    world.member.on_metadata(world.cluster.snapshot)
    assert world.member.state is MemberState.STABLE


def test_a_leader_that_is_back_joins_again_if_partitions_have_no_owner():
    """Its last process may have assigned before they came, or while metadata lacked the topic."""
    world = GroupWorld(group_instance_id="i")
    world.subscribe("orders")
    world.call_poll()
    back = joined(leader="me", members=[("me", ("orders",))], skip_assignment=True)
    world.answer(world.sent(JoinGroupRequest), back)
    world.answer(world.sent(SyncGroupRequest), synced(0, 1))
    world.call_poll()
    world.poll()
    assert world.member.state is MemberState.PREPARING


def test_a_leader_that_is_back_believes_that_other_members_own_the_rest():
    world = GroupWorld(group_instance_id="i")
    world.subscribe("orders")
    world.call_poll()
    members = [("me", ("orders",)), ("you", ("orders",))]
    back = joined(leader="me", members=members, skip_assignment=True)
    world.answer(world.sent(JoinGroupRequest), back)
    world.answer(world.sent(SyncGroupRequest), synced(0))
    world.call_poll()
    assert world.poll() == []
    assert world.member.state is MemberState.STABLE


def test_a_leader_by_pattern_asks_whether_the_topics_of_other_members_exist():
    world = GroupWorld()
    world.subscription.subscribe_pattern(re.compile("ord"), world.listener)
    world.member.on_subscription()
    world.call_poll()
    world.interest.on_metadata(world.cluster.describe({"orders": [1]}))
    members = [("me", ("orders",)), ("you", ("bills",))]
    world.answer(world.sent(JoinGroupRequest), joined(leader="me", members=members))
    assert world.poll() == []
    assert world.cluster.update_requests == 1  # else the group would wait for metadata.max.age.ms
    world.cluster.describe({"orders": [1]})
    world.sent(SyncGroupRequest)


def test_an_assignor_that_raises_is_an_error_for_the_program(world):
    class Broken(Exception):
        pass

    def assign(topics, members):
        raise Broken("no idea")

    world.member._assignors["range"].assign = assign
    world.call_poll()
    members = [("me", ("orders",))]
    world.answer(world.sent(JoinGroupRequest), joined(leader="me", members=members))
    with pytest.raises(KafkaError, match="no idea") as caught:
        world.call_poll()
    assert isinstance(caught.value.__cause__, Broken)
    world.sent(JoinGroupRequest)


def test_a_join_that_is_not_answered_for_long_is_repeated_on_a_new_connection(world):
    world.call_poll()
    first = world.sent(JoinGroupRequest)
    assert world.after(44_000).poll() == []
    assert world.nodes.disconnected == []
    second = world.after(1_000).sent(JoinGroupRequest)
    assert world.nodes.disconnected == [COORDINATOR]
    world.answer(first, KafkaConnectionError())
    assert world.member.state is MemberState.JOINING
    world.answer(second, joined())
    world.sent(SyncGroupRequest)


# --- failing to join -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "outcome",
    [
        JoinGroupResponse(error_code=CoordinatorLoadInProgressError.code),
        JoinGroupResponse(error_code=NotCoordinatorError.code),
        KafkaConnectionError(),
    ],
)
def test_a_passing_failure_is_followed_by_a_pause_and_another_join(world, outcome):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), outcome)
    assert world.poll() == []
    world.after(BACKOFF_MS).sent(JoinGroupRequest)
    assert world.inbox.is_empty


def test_an_unknown_member_joins_under_a_new_name(world):
    world.call_poll()
    given = JoinGroupResponse(error_code=MemberIdRequiredError.code, member_id="me")
    world.answer(world.sent(JoinGroupRequest), given)
    unknown = JoinGroupResponse(error_code=UnknownMemberIdError.code)
    world.answer(world.sent(JoinGroupRequest), unknown)
    assert world.after(BACKOFF_MS).sent(JoinGroupRequest).request.member_id == ""


@pytest.mark.parametrize("error", [GroupAuthorizationError, InconsistentGroupProtocolError])
def test_a_refusal_is_raised_once_and_the_next_join_waits_for_that(world, error):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), JoinGroupResponse(error_code=error.code))
    assert world.after(10 * BACKOFF_MS).poll() == []
    with pytest.raises(error):
        world.call_poll()
    world.call_poll()
    world.sent(JoinGroupRequest)


def test_an_assignor_that_was_not_offered_is_refused(world):
    world.call_poll()
    strange = joined(leader="me", protocol="sticky", members=[("me", ("orders",))])
    world.answer(world.sent(JoinGroupRequest), strange)
    with pytest.raises(KafkaError, match="sticky"):
        world.call_poll()


@pytest.mark.parametrize("leader", ["me", "other"])
def test_a_group_of_another_type_is_refused(world, leader):
    world.call_poll()
    strange = joined(leader=leader, members=[("me", ("orders",))])
    strange.protocol_type = "connect"
    world.answer(world.sent(JoinGroupRequest), strange)
    with pytest.raises(InconsistentGroupProtocolError, match="connect"):
        world.call_poll()
    assert world.member.metadata().generation_id == -1


def test_a_follower_refuses_an_assignor_that_was_not_offered(world):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined(protocol="sticky"))
    with pytest.raises(InconsistentGroupProtocolError, match="sticky"):
        world.call_poll()


@pytest.mark.parametrize("field", ["protocol_type", "protocol_name"])
def test_an_assignment_by_another_protocol_is_refused(world, field):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined())
    strange = synced(0)
    setattr(strange, field, "strange")
    world.answer(world.sent(SyncGroupRequest), strange)
    with pytest.raises(InconsistentGroupProtocolError, match="strange"):
        world.call_poll()
    assert assigned(world) == []


def test_an_old_coordinator_names_no_protocol(world):
    world.call_poll()
    old = joined()
    old.protocol_type = None
    world.answer(world.sent(JoinGroupRequest), old)
    answer = synced(0)
    answer.protocol_type = answer.protocol_name = None
    world.answer(world.sent(SyncGroupRequest), answer)
    world.call_poll()
    assert assigned(world) == [0]


def test_a_rebalance_during_the_sync_starts_another_join_at_once(world):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined())
    again = SyncGroupResponse(error_code=RebalanceInProgressError.code)
    world.answer(world.sent(SyncGroupRequest), again)
    assert world.sent(JoinGroupRequest).request.member_id == "me"


@pytest.mark.parametrize(
    ("error", "member_id"), [(UnknownMemberIdError, ""), (IllegalGenerationError, "me")]
)
def test_a_sync_of_a_generation_that_is_over_starts_another_join(world, error, member_id):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined())
    world.answer(world.sent(SyncGroupRequest), SyncGroupResponse(error_code=error.code))
    assert world.after(BACKOFF_MS).sent(JoinGroupRequest).request.member_id == member_id


def test_a_leader_that_assigns_what_was_not_subscribed_to_is_not_pressed(world, caplog):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined())
    world.answer(world.sent(SyncGroupRequest), synced(0, topic="strange"))
    assert world.poll() == []
    world.call_poll()
    world.after(BACKOFF_MS).sent(JoinGroupRequest)
    assert "'strange'" in caplog.text


def test_bytes_that_are_no_assignment_are_an_error_for_the_program(world):
    world.call_poll()
    world.answer(world.sent(JoinGroupRequest), joined())
    world.answer(world.sent(SyncGroupRequest), SyncGroupResponse(assignment=b"\0"))
    with pytest.raises(KafkaError):
        world.call_poll()
