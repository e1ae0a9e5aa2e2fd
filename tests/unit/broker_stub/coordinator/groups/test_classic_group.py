"""The group's state machine, without sockets: requests in, parked answers out, time by hand."""

import pytest

from broker_stub.coordinator.groups.group_state import GroupState
from pyclient.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaStorageError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from tests.support.classic_group_world import REBALANCE_MS, SESSION_MS, GroupWorld, answer


def test_the_first_member_leads_and_sees_the_members() -> None:
    world = GroupWorld()
    response = answer(world.join(metadata=b"subscription"))
    assert response.error_code == 0
    assert response.generation_id == 1
    assert response.leader == response.member_id
    assert [one.metadata for one in response.members] == [b"subscription"]
    assert world.group.state is GroupState.COMPLETING_REBALANCE


def test_a_dynamic_member_must_come_back_with_the_id_it_is_given() -> None:
    world = GroupWorld()
    first = world.join(id_required=True)
    assert first.error_code == MemberIdRequiredError.code
    second = answer(world.join(first.member_id, id_required=True))
    assert second.error_code == 0
    assert second.member_id == first.member_id


def test_a_promised_id_that_nobody_comes_back_with_holds_the_rebalance_up_for_a_session_only() -> (
    None
):
    world = GroupWorld()
    leader, _ = world.stable_pair()
    promised = world.join(id_required=True)
    world.leave(_other(world, leader))
    rejoined = world.join(leader)
    assert not rejoined.answered
    world.advance(SESSION_MS)
    assert answer(rejoined).generation_id == 3
    with pytest.raises(UnknownMemberIdError):
        world.join(promised.member_id)


def test_everybody_gets_the_assignment_once_the_leader_has_handed_it_in() -> None:
    world = GroupWorld()
    leader, follower = world.stable_pair()
    assert world.group.state is GroupState.STABLE
    assert world.sync(leader).assignment == b"a"
    assert world.kept == [(2, [leader, follower])]


def test_a_new_member_waits_until_the_others_have_rejoined() -> None:
    world = GroupWorld()
    leader, follower = world.stable_pair()
    newcomer = world.join()
    assert not newcomer.answered
    with pytest.raises(RebalanceInProgressError):
        world.group.heartbeat(follower, None, 2)
    world.join(leader)
    assert not newcomer.answered
    world.join(follower)
    assert answer(newcomer).generation_id == 3


def test_members_that_do_not_rejoin_in_time_are_left_out() -> None:
    world = GroupWorld()
    leader, follower = world.stable_pair()
    newcomer = world.join()
    world.join(leader)
    for _ in range(REBALANCE_MS // 5_000):
        world.advance(5_000)
        if newcomer.answered:
            break
        with pytest.raises(RebalanceInProgressError):
            world.group.heartbeat(follower, None, 2)
    assert answer(newcomer).generation_id == 3
    with pytest.raises(UnknownMemberIdError):
        world.group.heartbeat(follower, None, 3)


def test_a_member_without_heartbeats_is_gone_after_its_session() -> None:
    world = GroupWorld()
    leader, follower = world.stable_pair()
    world.advance(SESSION_MS - 1)
    world.group.heartbeat(leader, None, 2)
    world.advance(1)
    assert [one.member_id for one in world.group.roster] == [leader]
    assert world.group.state is GroupState.PREPARING_REBALANCE
    assert follower not in [one.member_id for one in world.group.roster]


def test_a_member_that_waits_for_our_answer_is_not_expired() -> None:
    world = GroupWorld()
    leader, _follower = world.stable_pair()
    newcomer = world.join()
    world.join(leader)
    world.advance(SESSION_MS + 1)
    assert newcomer.answered  # the silent follower's session ended, and with it the wait
    assert answer(newcomer).error_code == 0


def test_the_last_member_to_leave_empties_the_group_and_the_log_knows() -> None:
    world = GroupWorld()
    leader, follower = world.stable_pair()
    world.leave(follower)
    world.leave(leader)
    assert world.group.state is GroupState.EMPTY
    assert world.kept[-1] == (3, [])


def test_leaving_needs_a_member() -> None:
    world = GroupWorld()
    world.stable_pair()
    assert world.leave("stranger") == UnknownMemberIdError.code


def test_a_heartbeat_of_an_older_generation_is_refused() -> None:
    world = GroupWorld()
    leader, _ = world.stable_pair()
    with pytest.raises(IllegalGenerationError):
        world.group.heartbeat(leader, None, 1)


def test_a_sync_parked_when_the_rebalance_starts_again_is_sent_back_to_join() -> None:
    world = GroupWorld()
    leader = answer(world.join())
    follower = world.join()
    world.join(leader.member_id)
    parked = world.sync(answer(follower).member_id)
    world.join()
    assert answer(parked).error_code == RebalanceInProgressError.code


def test_those_who_never_sync_are_expelled() -> None:
    world = GroupWorld()
    leader = answer(world.join())
    follower = world.join()
    world.join(leader.member_id)
    follower_id = answer(follower).member_id
    parked = world.sync(follower_id)
    for _ in range(REBALANCE_MS // 5_000):  # the leader keeps its session, and never syncs
        world.group.heartbeat(leader.member_id, None, 2)
        world.advance(5_000)
    assert answer(parked).error_code == RebalanceInProgressError.code
    assert [one.member_id for one in world.group.roster] == [follower_id]


def test_a_member_without_a_common_assignor_is_refused() -> None:
    world = GroupWorld()
    answer(world.join(protocols=("range", "roundrobin")))
    with pytest.raises(InconsistentGroupProtocolError, match="sticky"):
        world.join(protocols=("sticky",))


def test_the_assignor_most_members_prefer_is_taken() -> None:
    world = GroupWorld(initial_delay_ms=100)
    joins = [
        world.join(protocols=("range", "roundrobin")),
        world.join(protocols=("roundrobin", "range")),
        world.join(protocols=("roundrobin", "range")),
    ]
    world.advance(100)
    world.advance(100)
    assert {answer(one).protocol_name for one in joins} == {"roundrobin"}


def test_a_new_group_waits_a_moment_for_its_members_and_another_while_they_come() -> None:
    world = GroupWorld(initial_delay_ms=100)
    first = world.join()
    world.advance(60)
    second = world.join()
    world.advance(40)
    world.advance(99)
    assert not first.answered
    world.advance(1)
    assert answer(first).generation_id == answer(second).generation_id == 1


def test_a_new_group_waits_no_longer_than_a_rebalance_however_many_come() -> None:
    world = GroupWorld(initial_delay_ms=20_000)
    joins = [world.join()]
    while not joins[0].answered:
        assert len(joins) <= REBALANCE_MS // 10_000
        world.advance(10_000)
        joins.append(world.join())
    assert answer(joins[0]).generation_id == 1
    assert world.clock.monotonic_ms() == REBALANCE_MS


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    world = GroupWorld()
    first = answer(world.join(instance="i"))
    world.sync(first.member_id, {first.member_id: b"a"})
    back = world.join(instance="i")
    assert back.generation_id == 1
    assert back.skip_assignment
    assert world.group.state is GroupState.STABLE
    assert world.sync(back.member_id).assignment == b"a"
    with pytest.raises(FencedInstanceIdError):
        world.group.heartbeat(first.member_id, "i", 1)


def test_a_static_member_that_comes_back_with_another_assignor_causes_a_rebalance() -> None:
    world = GroupWorld()
    first = answer(world.join(instance="i", protocols=("range", "roundrobin")))
    world.sync(first.member_id, {first.member_id: b"a"})
    back = answer(world.join(instance="i", protocols=("roundrobin",)))
    assert (back.generation_id, back.protocol_name) == (2, "roundrobin")


def test_a_static_member_that_comes_back_while_it_waits_fences_itself() -> None:
    world = GroupWorld(initial_delay_ms=100)
    first = world.join(instance="i")
    second = world.join(instance="i")
    assert answer(first).error_code == FencedInstanceIdError.code
    world.advance(100)
    assert answer(second).leader == answer(second).member_id
    assert len(answer(second).members) == 1


def test_an_old_client_that_comes_back_as_static_leader_takes_itself_for_a_follower() -> None:
    world = GroupWorld()
    first = answer(world.join(instance="i"))
    world.sync(first.member_id, {first.member_id: b"a"})
    back = world.join(instance="i", version9=False)
    assert back.leader == first.member_id != back.member_id
    assert back.members == []


def test_a_member_that_is_removed_while_it_joins_has_to_start_over_without_an_id() -> None:
    world = GroupWorld()
    _leader, follower = world.stable_pair()
    joining = world.join(follower, metadata=b"changed")
    assert world.leave(follower) == 0
    assert answer(joining).error_code == UnknownMemberIdError.code
    assert answer(joining).member_id == ""


def test_a_static_member_may_be_made_to_leave_by_its_instance_id() -> None:
    world = GroupWorld()
    answer(world.join(instance="i"))
    assert world.leave("", "i") == 0
    assert world.group.state is GroupState.EMPTY


def test_an_assignment_that_cannot_be_kept_is_given_to_nobody() -> None:
    world = GroupWorld()
    leader = answer(world.join())
    world.disk_is_full = True
    with pytest.raises(KafkaStorageError):
        world.sync(leader.member_id, {leader.member_id: b"a"})
    assert world.group.state is GroupState.PREPARING_REBALANCE
    assert all(member.assignment == b"" for member in world.group.roster)


def test_all_who_wait_for_an_assignment_are_told_why_there_is_none() -> None:
    world = GroupWorld()
    leader, follower = world.stable_pair()
    world.leave(follower)
    joined = answer(world.join(leader))
    world.join()
    joined = answer(world.join(leader))
    waiting = world.sync(_other(world, leader))
    world.disk_is_full = True
    with pytest.raises(KafkaStorageError):
        world.sync(leader, {joined.member_id: b"a"})
    assert answer(waiting).error_code == KafkaStorageError.code


def test_a_group_that_becomes_empty_does_so_whatever_the_disk_says() -> None:
    world = GroupWorld()
    member = answer(world.join())
    world.sync(member.member_id, {member.member_id: b"a"})
    world.disk_is_full = True
    world.advance(SESSION_MS)  # its timer: nobody is there to be told
    assert world.group.state is GroupState.EMPTY


def test_a_static_member_whose_return_cannot_be_kept_is_still_the_old_one() -> None:
    world = GroupWorld()
    member = answer(world.join(instance="i"))
    world.sync(member.member_id, {member.member_id: b"a"})
    world.disk_is_full = True
    with pytest.raises(KafkaStorageError):
        world.join(instance="i")
    world.group.heartbeat(member.member_id, "i", 1)
    assert world.group.roster.leader_id == member.member_id
    world.disk_is_full = False
    assert answer(world.join(instance="i")).member_id != member.member_id


def test_offsets_may_be_committed_by_members_and_by_nobody_else() -> None:
    world = GroupWorld()
    leader, _ = world.stable_pair()
    world.group.validate_commit(leader, None, 2)
    with pytest.raises(UnknownMemberIdError):
        world.group.validate_commit("", None, -1)
    with pytest.raises(IllegalGenerationError):
        world.group.validate_commit(leader, None, 1)


def _other(world: GroupWorld, member_id: str) -> str:
    return next(one.member_id for one in world.group.roster if one.member_id != member_id)
