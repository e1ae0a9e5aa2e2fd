"""OffsetDelete, partition by partition."""

from typing import Any

import pytest

from pyclient.error_codes import (
    GroupIdNotFoundError,
    GroupNotEmptyError,
    GroupSubscribedToTopicError,
    InvalidGroupIdError,
    NotCoordinatorError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.support.group_member import GroupMember, find_coordinator
from tests.support.node_harness import NodeHarness
from tests.support.subscriptions import subscription


@pytest.fixture(autouse=True)
def topics(harness: NodeHarness) -> None:
    find_coordinator(harness)
    harness.create_topic("orders")
    harness.create_topic("payments", 2)


def delete(harness: NodeHarness, *partitions: tuple[str, int], group_id: str = "group") -> Any:
    """The error of the whole, or that of each partition."""
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
            )
            for topic, index in partitions
        ],
    )
    response = harness.ask(request)
    if response.error_code:
        return response.error_code
    return [one.error_code for topic in response.topics for one in topic.partitions]


def offsets(harness: NodeHarness) -> list[tuple[str, int]]:
    found = harness.node.coordinator.offsets.partitions("group")
    return [(topic, partition) for topic, partition in found]


def subscriber(harness: NodeHarness, *topics: str, protocol_type: str = "consumer") -> GroupMember:
    member = GroupMember(harness)
    metadata = subscription(*topics)
    member.join(metadata=metadata, protocol_type=protocol_type)
    member.start_sync({member.member_id: b""}, protocol_type=protocol_type)
    return member


def test_offsets_of_an_empty_group_are_deleted_for_good(harness):
    member = GroupMember(harness)
    member.commit(5)
    member.commit(6, topic="payments")
    assert delete(harness, ("orders", 0)) == [0]
    assert offsets(harness) == [("payments", 0)]
    harness.restart()
    assert offsets(harness) == [("payments", 0)]


def test_a_partition_without_an_offset_is_no_error_and_one_that_does_not_exist_is(harness):
    GroupMember(harness).commit(5)
    unknown = UnknownTopicOrPartitionError.code
    wanted = [("payments", 1), ("payments", 2), ("missing", 0), ("orders", 0)]
    assert delete(harness, *wanted) == [0, unknown, unknown, 0]
    assert offsets(harness) == []


def test_a_topic_that_a_member_subscribes_to_keeps_its_offsets(harness):
    member = subscriber(harness, "orders")
    member.commit(5)
    member.commit(6, topic="payments")
    subscribed = GroupSubscribedToTopicError.code
    assert delete(harness, ("orders", 0), ("payments", 0)) == [subscribed, 0]
    assert offsets(harness) == [("orders", 0)]


def test_a_member_whose_subscription_cannot_be_read_may_subscribe_to_anything(harness):
    member = GroupMember(harness)
    member.join(metadata=b"\0")
    member.start_sync({member.member_id: b""})
    member.commit(5)
    assert delete(harness, ("orders", 0)) == [GroupSubscribedToTopicError.code]


def test_a_member_of_the_first_generation_may_subscribe_to_anything_until_it_has_joined(tmp_path):
    harness = NodeHarness(tmp_path / "waiting", **{"group.initial.rebalance.delay.ms": 3000})
    find_coordinator(harness)
    harness.create_topic("orders")
    GroupMember(harness).commit(5)
    member = GroupMember(harness)
    member.member_id = member.start_join().response.member_id
    assert delete(harness, ("orders", 0)) == [0]  # it has no member yet
    GroupMember(harness).commit(5)
    member.start_join()
    assert delete(harness, ("orders", 0)) == [GroupSubscribedToTopicError.code]
    harness.node.abandon()


def test_before_its_first_generation_a_consumer_group_may_subscribe_to_anything(tmp_path):
    harness = NodeHarness(tmp_path / "other", **{"group.initial.rebalance.delay.ms": 1000})
    find_coordinator(harness)
    harness.create_topic("orders")
    GroupMember(harness).commit(5)
    GroupMember(harness, join=3).start_join(metadata=subscription("payments"))
    assert delete(harness, ("orders", 0)) == [GroupSubscribedToTopicError.code]
    harness.advance(1000)
    assert delete(harness, ("orders", 0)) == [0]


def test_offsets_of_a_group_that_was_restored_are_checked_too(harness):
    subscriber(harness, "orders").commit(5)
    harness.restart()
    assert delete(harness, ("orders", 0)) == [GroupSubscribedToTopicError.code]


def test_a_group_of_another_kind_must_be_empty(harness):
    member = subscriber(harness, "orders", protocol_type="connect")
    member.commit(5)
    assert delete(harness, ("orders", 0)) == GroupNotEmptyError.code
    member.leave()
    assert delete(harness, ("orders", 0)) == [0]


def test_a_group_that_does_not_exist_has_no_offsets(harness):
    assert delete(harness, ("orders", 0)) == GroupIdNotFoundError.code
    assert delete(harness, ("orders", 0), group_id="") == InvalidGroupIdError.code


def test_when_the_offsets_topic_is_deleted_its_groups_are_dead(harness):
    member = subscriber(harness, "orders")
    member.commit(5)
    topic = harness.node.image.topic("__consumer_offsets")
    harness.node.controller.delete_topics([topic.topic_id], lambda _: None)
    assert offsets(harness) == []
    assert member.heartbeat() == NotCoordinatorError.code
    find_coordinator(harness)
    assert member.heartbeat() == UnknownMemberIdError.code  # it has to start over
    assert subscriber(harness, "orders").generation_id == 1
