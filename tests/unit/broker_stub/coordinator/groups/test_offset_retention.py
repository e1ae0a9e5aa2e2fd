"""Offsets and groups that nobody uses go after `offsets.retention.minutes`."""

import pytest

from pyclient.protocol.messages.list_groups import ListGroupsRequest
from pyclient.types import TopicPartition
from tests.support.group_member import GroupMember, find_coordinator
from tests.support.node_harness import NodeHarness
from tests.support.subscriptions import subscription

MINUTE_MS = 60_000
RETENTION_MS = 10 * MINUTE_MS
CHECK_MS = MINUTE_MS


@pytest.fixture
def harness(tmp_path):
    harness = NodeHarness(
        tmp_path,
        **{
            "offsets.retention.minutes": 10,
            "offsets.retention.check.interval.ms": CHECK_MS,
            "group.max.session.timeout.ms": 100 * MINUTE_MS,
        },
    )
    find_coordinator(harness)
    harness.create_topic("orders")
    harness.create_topic("payments")
    return harness


def member_of(harness: NodeHarness, metadata: bytes, **fields: object) -> GroupMember:
    """A stable group of one."""
    member = GroupMember(harness)
    member.join(session_timeout_ms=100 * MINUTE_MS, metadata=metadata, **fields)
    member.start_sync({member.member_id: b""})
    return member


def topics_with_offsets(harness: NodeHarness) -> set[str]:
    return {one.topic for one in harness.node.coordinator.offsets.partitions("group")}


def group_ids(harness: NodeHarness) -> list[str]:
    return [one.group_id for one in harness.ask(ListGroupsRequest()).groups]


def pass_minutes(harness: NodeHarness, minutes: int) -> None:
    for _ in range(minutes):
        harness.advance(MINUTE_MS)


def test_an_offset_without_members_expires_by_its_commit_time(harness):
    member = GroupMember(harness)
    member.commit(5)
    pass_minutes(harness, 5)
    member.commit(6, topic="payments")
    pass_minutes(harness, 5)
    assert topics_with_offsets(harness) == {"payments"}
    assert group_ids(harness) == ["group"]
    pass_minutes(harness, 5)
    assert group_ids(harness) == []
    harness.restart()
    assert group_ids(harness) == []


def test_an_empty_group_keeps_its_offsets_from_the_moment_it_became_empty(harness):
    member = member_of(harness, subscription("orders"))
    member.commit(5)
    pass_minutes(harness, 30)
    member.leave()
    pass_minutes(harness, 9)
    assert topics_with_offsets(harness) == {"orders"}
    harness.restart()
    pass_minutes(harness, 1)
    assert group_ids(harness) == []


def test_a_stable_consumer_group_loses_only_offsets_of_topics_it_does_not_read(harness):
    member = member_of(harness, subscription("orders"))
    member.commit(5)
    member.commit(6, topic="payments")
    pass_minutes(harness, 30)
    assert topics_with_offsets(harness) == {"orders"}


@pytest.mark.parametrize(
    ("metadata", "protocol_type"),
    [(b"no subscription", "consumer"), (b"", "consumer"), (subscription("orders"), "connect")],
)
def test_a_group_whose_subscriptions_cannot_be_read_keeps_everything(
    harness, metadata, protocol_type
):
    member = GroupMember(harness)
    member.join(session_timeout_ms=100 * MINUTE_MS, metadata=metadata, protocol_type=protocol_type)
    member.start_sync({member.member_id: b""}, protocol_type=protocol_type)
    member.commit(5)
    member.commit(6, topic="payments")
    pass_minutes(harness, 30)
    assert topics_with_offsets(harness) == {"orders", "payments"}


def test_a_group_that_rebalances_keeps_everything(harness):
    member = member_of(harness, subscription("orders"), rebalance_timeout_ms=100 * MINUTE_MS)
    member.commit(6, topic="payments")
    other = GroupMember(harness, join=3)
    other.start_join(metadata=subscription("orders"))
    pass_minutes(harness, 30)
    assert topics_with_offsets(harness) == {"payments"}


def test_a_clients_own_retention_time_goes_before_the_brokers(harness):
    member = GroupMember(harness)
    member.commit(5, version=4, retention_time_ms=2 * MINUTE_MS)
    member.commit(6, topic="payments", version=4, retention_time_ms=30 * MINUTE_MS)
    pass_minutes(harness, 2)
    assert topics_with_offsets(harness) == {"payments"}
    pass_minutes(harness, 27)
    assert topics_with_offsets(harness) == {"payments"}
    pass_minutes(harness, 1)
    assert topics_with_offsets(harness) == set()


def test_an_empty_group_without_offsets_is_deleted_at_the_next_check(harness):
    member = member_of(harness, subscription("orders"))
    member.leave()
    assert group_ids(harness) == ["group"]
    pass_minutes(harness, 1)
    assert group_ids(harness) == []
    assert harness.node.coordinator.offsets.get("group", TopicPartition("orders", 0)) is None


def test_a_group_with_a_pending_member_is_not_deleted(harness):
    member = GroupMember(harness)
    response = member.start_join(session_timeout_ms=5 * MINUTE_MS).response
    pass_minutes(harness, 2)
    member.member_id = response.member_id
    assert member.joined(member.start_join(session_timeout_ms=5 * MINUTE_MS)).generation_id == 1
