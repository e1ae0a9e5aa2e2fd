"""Members that join, send heartbeats and never sync: expelled after the rebalance timeout."""

import contextlib

import pytest

from broker_stub.coordinator.groups.group_state import GroupState
from pyclient.errors import RebalanceInProgressError, UnknownMemberIdError
from tests.support.classic_group_world import REBALANCE_MS, GroupWorld, answer

STEP_MS = 5_000


def beat_for(world: GroupWorld, milliseconds: int, *members: tuple[str, str | None]) -> None:
    """Let time pass while the members send heartbeats, as long as they are in the generation."""
    for _ in range(milliseconds // STEP_MS):
        for member_id, instance in members:
            if world.group.roster.get(member_id) is None:
                continue
            with contextlib.suppress(RebalanceInProgressError):
                world.group.heartbeat(member_id, instance, world.group.generation_id)
        world.advance(STEP_MS)


@pytest.mark.parametrize("instance", [None, "i"])
def test_a_follower_that_never_syncs_is_expelled_from_a_stable_group(instance):
    world = GroupWorld()
    leader = answer(world.join()).member_id
    joining = world.join(instance=instance)
    world.join(leader)
    silent = answer(joining).member_id
    world.sync(leader, {leader: b"a", silent: b"b"})
    assert world.group.state is GroupState.STABLE
    beat_for(world, REBALANCE_MS - STEP_MS, (leader, None), (silent, instance))
    assert world.group.roster.get(silent) is not None
    beat_for(world, STEP_MS, (leader, None), (silent, instance))
    assert [one.member_id for one in world.group.roster] == [leader]
    assert world.group.state is GroupState.PREPARING_REBALANCE
    with pytest.raises(UnknownMemberIdError):
        world.group.heartbeat(silent, instance, world.group.generation_id)


def test_only_the_members_whose_sync_is_pending_are_expelled():
    world = GroupWorld()
    leader, follower = world.stable_pair()
    world.group.heartbeat(follower, None, 2)
    beat_for(world, 2 * REBALANCE_MS, (leader, None), (follower, None))
    assert len(world.group.roster) == 2
    assert world.group.state is GroupState.STABLE


def test_a_late_sync_ends_the_wait():
    world = GroupWorld()
    leader = answer(world.join()).member_id
    joining = world.join()
    world.join(leader)
    follower = answer(joining).member_id
    world.sync(leader, {leader: b"a", follower: b"b"})
    beat_for(world, REBALANCE_MS - STEP_MS, (leader, None), (follower, None))
    assert world.sync(follower).assignment == b"b"
    assert world.group.rebalance_deadline_ms is None
    beat_for(world, REBALANCE_MS, (leader, None), (follower, None))
    assert world.group.state is GroupState.STABLE


def test_a_static_member_that_did_not_rejoin_is_expected_to_sync():
    world = GroupWorld()
    leader = answer(world.join()).member_id
    joining = world.join(instance="i")
    world.join(leader)
    static = answer(joining).member_id
    waiting = world.sync(static)
    world.sync(leader, {leader: b"a", static: b"b"})
    assert answer(waiting).error_code == 0
    rejoining = world.join(leader)  # a rebalance that the static member sits out
    beat_for(world, REBALANCE_MS, (static, "i"))
    assert answer(rejoining).generation_id == 3
    assert world.group.roster.get(static) is not None
    world.sync(leader, {leader: b"a"})
    beat_for(world, REBALANCE_MS, (leader, None), (static, "i"))
    assert [one.member_id for one in world.group.roster] == [leader]


def test_a_static_member_replaced_before_it_synced_is_still_expected_to_sync():
    world = GroupWorld()
    leader = answer(world.join()).member_id
    joining = world.join(instance="i")
    world.join(leader)
    first = answer(joining).member_id
    world.sync(leader, {leader: b"a", first: b"b"})
    second = world.join(instance="i").member_id
    beat_for(world, REBALANCE_MS, (leader, None), (second, "i"))
    assert [one.member_id for one in world.group.roster] == [leader]
