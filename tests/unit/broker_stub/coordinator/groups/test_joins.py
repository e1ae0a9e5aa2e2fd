"""JoinGroup's corner cases: sizes, protocols, superseded requests, dead groups."""

import pytest

from broker_stub.coordinator.groups.group_state import GroupState
from pyclient.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from tests.support.classic_group_world import REBALANCE_MS, SESSION_MS, GroupWorld, answer


def test_a_full_group_takes_no_new_member():
    world = GroupWorld(max_size=2)
    leader, follower = world.stable_pair()
    with pytest.raises(GroupMaxSizeReachedError, match="2 members"):
        world.join()
    assert world.group.state is GroupState.STABLE
    world.join(leader)
    assert answer(world.join(follower)).generation_id == 3


def test_a_group_that_fills_up_while_it_gathers_turns_the_next_one_away():
    world = GroupWorld(initial_delay_ms=100, max_size=2)
    joins = [world.join(), world.join()]
    with pytest.raises(GroupMaxSizeReachedError):
        world.join()
    world.advance(100)
    world.advance(100)
    assert [answer(one).generation_id for one in joins] == [1, 1]


def test_a_pending_member_that_finds_the_group_full_loses_its_id():
    world = GroupWorld(max_size=1)
    pending = world.join(id_required=True).member_id
    assert answer(world.join()).generation_id == 1
    with pytest.raises(GroupMaxSizeReachedError):
        world.join(pending, id_required=True)
    assert not world.group.has_pending_members


def test_a_member_cannot_swap_the_only_common_assignor():
    world = GroupWorld()
    member = answer(world.join(protocols=("range",))).member_id
    with pytest.raises(InconsistentGroupProtocolError, match="roundrobin"):
        world.join(member, protocols=("roundrobin",))
    assert answer(world.join(member, protocols=("roundrobin", "range"))).generation_id == 2
    assert answer(world.join(member, protocols=("roundrobin",))).protocol_name == "roundrobin"


def test_a_second_join_of_the_same_member_answers_the_first():
    world = GroupWorld()
    leader, follower = world.stable_pair()
    first = world.join(leader)
    second = world.join(leader)
    assert answer(first).error_code == RebalanceInProgressError.code
    world.join(follower)
    assert answer(second).generation_id == 3


def test_a_second_sync_of_the_same_member_answers_the_first():
    world = GroupWorld()
    leader = answer(world.join()).member_id
    joining = world.join()
    world.join(leader)
    follower = answer(joining).member_id
    first, second = world.sync(follower), world.sync(follower)
    assert answer(first).error_code == RebalanceInProgressError.code
    world.sync(leader, {follower: b"b"})
    assert answer(second).assignment == b"b"


def test_without_an_initial_delay_a_new_group_waits_for_no_pending_member():
    world = GroupWorld()
    world.join(id_required=True)
    assert answer(world.join()).generation_id == 1


def test_the_initial_delay_is_kept_even_if_the_rebalance_timeout_is_shorter():
    world = GroupWorld(initial_delay_ms=REBALANCE_MS + 1000)
    joining = world.join()
    world.advance(REBALANCE_MS)
    assert not joining.answered
    world.advance(1000)
    assert answer(joining).generation_id == 1


def test_members_that_leave_together_cause_one_rebalance():
    world = GroupWorld()
    leader, follower = world.stable_pair()
    joining = world.join()
    world.join(leader)
    world.join(follower)
    third = answer(joining).member_id
    rejoining = world.join(leader, metadata=b"new")
    assert world.group.leave([(follower, None), (third, None), ("stranger", None)])[:2] == [
        None,
        None,
    ]
    assert answer(rejoining).generation_id == 4
    assert world.group.generation_id == 4


def test_a_pending_member_that_leaves_with_others_ends_the_wait_only_once_all_have_left():
    world = GroupWorld()
    leader, follower = world.stable_pair()
    pending = world.join(id_required=True).member_id
    joins = [world.join(leader), world.join(follower)]
    assert world.group.leave([(pending, None), (follower, None)]) == [None, None]
    assert answer(joins[0]).generation_id == world.group.generation_id == 3
    assert [one.member_id for one in answer(joins[0]).members] == [leader]


def test_a_pending_member_that_leaves_alone_ends_the_wait_for_it():
    world = GroupWorld()
    leader, follower = world.stable_pair()
    pending = world.join(id_required=True).member_id
    assert world.leave(pending) == 0
    assert world.group.state is GroupState.STABLE
    again = world.join(id_required=True).member_id
    joins = [world.join(leader), world.join(follower)]
    assert world.leave(again) == 0
    assert [answer(one).generation_id for one in joins] == [3, 3]


def test_the_generation_after_the_greatest_is_the_least_as_in_java():
    world = GroupWorld()
    leader, follower = world.stable_pair()
    world.group.generation_id = 2**31 - 1
    joins = [world.join(leader), world.join(follower)]
    assert [answer(one).generation_id for one in joins] == [-(2**31)] * 2
    answer(joins[0]).encode_bytes(9)
    world.sync(leader, {leader: b"a", follower: b"b"})
    world.group.validate_commit(leader, None, -(2**31))


def test_a_dynamic_member_with_an_instance_id_that_nobody_has_is_unknown():
    world = GroupWorld()
    member, _ = world.stable_pair()
    for attempt in (
        lambda: world.group.heartbeat(member, "nobody", 2),
        lambda: world.group.validate_commit(member, "nobody", 2),
        lambda: world.join(member, instance="nobody"),
    ):
        with pytest.raises(UnknownMemberIdError):
            attempt()
    assert world.leave(member, "nobody") == UnknownMemberIdError.code


def test_a_fenced_static_member_is_refused_by_every_request():
    world = GroupWorld()
    old = answer(world.join(instance="i")).member_id
    world.sync(old, {old: b"a"})
    new = world.join(instance="i").member_id
    for attempt in (
        lambda: world.group.heartbeat(old, "i", 1),
        lambda: world.group.validate_commit(old, "i", 1),
        lambda: world.join(old, instance="i"),
        lambda: world.sync(old, instance="i"),
    ):
        with pytest.raises(FencedInstanceIdError, match=new):
            attempt()
    assert world.leave(old, "i") == FencedInstanceIdError.code
    world.group.heartbeat(new, "i", 1)


def test_a_dead_group_answers_what_is_parked_and_forgets_its_timers():
    world = GroupWorld()
    leader, _follower = world.stable_pair()
    joining = world.join(leader)
    world.join(id_required=True)
    world.group.die(NotCoordinatorError.code)
    assert answer(joining).error_code == NotCoordinatorError.code
    assert world.group.state is GroupState.DEAD
    assert world.timers.next_deadline_ms() is None
    with pytest.raises(CoordinatorNotAvailableError):
        world.group.heartbeat(leader, None, 2)
    with pytest.raises(CoordinatorNotAvailableError):
        world.join()


def test_a_cooperative_rebalance_takes_two_generations_and_disturbs_no_owner():
    """A member gives partitions up, rejoins, and only then another one gets them."""
    world = GroupWorld()
    leader = answer(world.join(metadata=b"owns 0 1")).member_id
    world.sync(leader, {leader: b"0 1"})
    joining = world.join(metadata=b"owns nothing")
    world.group.validate_commit(leader, None, 1)  # it goes on with its partitions meanwhile
    world.join(leader, metadata=b"owns 0 1")
    newcomer = answer(joining).member_id
    waiting = world.sync(newcomer)
    assert answer(world.sync(leader, {leader: b"0", newcomer: b""})).assignment == b"0"
    assert answer(waiting).assignment == b""
    rejoining = world.join(leader, metadata=b"owns 0")  # it revoked 1: the metadata changed
    assert not rejoining.answered
    again = world.join(newcomer, metadata=b"owns nothing")
    assert answer(again).generation_id == answer(rejoining).generation_id == 3
    waiting = world.sync(newcomer)
    world.sync(leader, {leader: b"0", newcomer: b"1"})
    assert answer(waiting).assignment == b"1"


def test_a_pending_member_holds_a_rebalance_up_for_its_session_only():
    world = GroupWorld()
    leader, follower = world.stable_pair()
    world.join(id_required=True)
    joins = [world.join(leader), world.join(follower)]
    assert not any(one.answered for one in joins)
    world.advance(SESSION_MS)
    assert [answer(one).generation_id for one in joins] == [3, 3]
