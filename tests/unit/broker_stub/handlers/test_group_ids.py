"""Ids of any length: those that the log cannot hold are refused, and no group gets stuck."""

from pyclient.error_codes import InvalidRequestError
from tests.support.group_member import GroupMember, find_coordinator, stable_pair

LONGEST = 2**15 - 1  # the protocol has no longer strings


def test_the_longest_group_id_works_and_outlives_a_restart(harness):
    find_coordinator(harness)
    harness.create_topic("orders")
    member = GroupMember(harness, group_id="g" * LONGEST)
    member.join()
    assert member.start_sync({member.member_id: b"all"}).response.error_code == 0
    assert member.commit(5) == 0
    harness.restart()
    assert member.heartbeat() == 0


def test_an_instance_id_whose_member_id_would_be_too_long_does_not_disturb_the_group(harness):
    leader, follower = stable_pair(harness)
    stranger = GroupMember(harness, instance_id="i" * LONGEST)
    assert stranger.start_join().response.error_code == InvalidRequestError.code
    assert leader.heartbeat() == follower.heartbeat() == 0
