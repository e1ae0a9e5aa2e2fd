"""Calls that one broker alone can serve: the leader of a partition, the coordinator of a group."""

import pytest

from pyclient.admin import IsolationLevel, OffsetSpec
from pyclient.errors import (
    KafkaTimeoutError,
    NotCoordinatorError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyclient.protocol.messages.consumer_protocol import (
    TopicPartition as AssignedPartitions,
)
from pyclient.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from pyclient.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from pyclient.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from pyclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pyclient.types import OffsetAndTimestamp, TopicPartition

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def topic(network):
    """Its partition 0 is led by broker 1, its partition 1 by broker 2."""
    network.add_topic("orders", partitions=2)


def deleted(error=0):
    def answer(request, version):
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        DeleteRecordsPartitionResult(
                            partition_index=one.partition_index,
                            low_watermark=one.offset,
                            error_code=error,
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


def in_turn(*answers):
    """Each answer once, the last one for ever."""
    left = list(answers)
    return lambda request, version: (left.pop(0) if len(left) > 1 else left[0])(request, version)


def test_records_are_deleted_by_each_partitions_leader(admin, topic, controller, other):
    for broker in (controller, other):
        broker.on(DeleteRecordsRequest, deleted())
    result = admin.delete_records({FIRST: 5, SECOND: 7})
    assert {key: one["low_watermark"] for key, one in result.items()} == {FIRST: 5, SECOND: 7}
    for broker, partition in ((controller, 0), (other, 1)):
        (request,) = broker.received(DeleteRecordsRequest)
        assert [one.partition_index for one in request.topics[0].partitions] == [partition]


def test_a_leader_can_be_named(admin, topic, controller, other):
    other.on(DeleteRecordsRequest, deleted())
    admin.delete_records({FIRST: 5}, partition_leader_id=2)
    assert not controller.received(DeleteRecordsRequest)


@pytest.mark.parametrize("passing", [NotLeaderOrFollowerError, RequestTimedOutError])
def test_a_passing_error_has_the_leader_asked_again(admin, topic, controller, other, passing):
    controller.on(DeleteRecordsRequest, in_turn(deleted(passing.code), deleted()))
    other.on(DeleteRecordsRequest, deleted())
    assert set(admin.delete_records({FIRST: 5, SECOND: 7})) == {FIRST, SECOND}
    assert len(controller.received(DeleteRecordsRequest)) == 2
    assert len(other.received(DeleteRecordsRequest)) == 1  # it had done its part


def test_one_broken_connection_does_not_keep_the_others_waiting(admin, topic, controller, other):
    controller.on(DeleteRecordsRequest, in_turn(lambda *_: DISCONNECT, deleted()))
    other.on(DeleteRecordsRequest, deleted())
    assert set(admin.delete_records({FIRST: 5, SECOND: 7})) == {FIRST, SECOND}
    assert len(other.received(DeleteRecordsRequest)) == 1


def test_what_cannot_be_deleted_is_an_error_with_its_name(admin, topic, controller):
    controller.on(DeleteRecordsRequest, deleted(OffsetOutOfRangeError.code))
    with pytest.raises(OffsetOutOfRangeError, match="orders-0"):
        admin.delete_records({FIRST: 5})


def test_a_partition_that_does_not_exist_is_an_error_at_once(admin, topic, network):
    started_ms = network.clock.monotonic_ms()
    with pytest.raises(UnknownTopicOrPartitionError, match="orders-7"):
        admin.delete_records({TopicPartition("orders", 7): 5})
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'oders'"):
        admin.delete_records({TopicPartition("oders", 0): 5})
    assert network.clock.monotonic_ms() - started_ms < 100


def test_a_leader_that_never_leads_ends_the_call_by_its_deadline(admin, topic, network, controller):
    controller.on(DeleteRecordsRequest, deleted(NotLeaderOrFollowerError.code))
    started_ms = network.clock.monotonic_ms()
    with pytest.raises(KafkaTimeoutError, match=r"within 2000 ms: orders-0 .*NOT_LEADER"):
        admin.delete_records({FIRST: 5}, timeout_ms=2_000)
    assert network.clock.monotonic_ms() - started_ms == pytest.approx(2_000, abs=1)


def found(request, version):
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=one.partition_index, offset=10, timestamp=one.timestamp
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def test_offsets_are_looked_up_at_the_leaders(admin, topic, controller, other):
    for broker in (controller, other):
        broker.on(ListOffsetsRequest, found)
    result = admin.list_partition_offsets(
        {FIRST: OffsetSpec.LATEST, SECOND: 1_000}, isolation_level="read_committed"
    )
    assert result == {
        FIRST: OffsetAndTimestamp(10, -1, None),
        SECOND: OffsetAndTimestamp(10, 1_000, None),
    }
    (request,) = other.received(ListOffsetsRequest)
    assert (request.replica_id, request.isolation_level) == (-1, IsolationLevel.READ_COMMITTED)


def test_an_offset_that_an_old_broker_does_not_know_of_is_not_asked_for(admin, topic, controller):
    controller.versions[ListOffsetsRequest.api_key] = (1, 5)
    controller.cut()
    with pytest.raises(UnsupportedVersionError, match="versions 7 to 11, the broker serves 1 to 5"):
        admin.list_partition_offsets({FIRST: OffsetSpec.MAX_TIMESTAMP})


# --- groups --------------------------------------------------------------------------------------


@pytest.fixture
def coordinator(controller, other):
    """Broker 2 coordinates every group."""

    def found(request, version):
        coordinators = [Coordinator(key=key, node_id=2) for key in request.coordinator_keys]
        if version < 4:
            return FindCoordinatorResponse(node_id=2, host="broker2")
        return FindCoordinatorResponse(coordinators=coordinators)

    for broker in (controller, other):
        broker.on(FindCoordinatorRequest, found)
    return other


def described(request, version):
    subscription = ConsumerProtocolSubscription(topics=["orders"])
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[AssignedPartitions(topic="orders", partitions=[0])]
    )
    member = DescribedGroupMember(
        member_id="m",
        member_metadata=b"\x00\x09" + subscription.encode_bytes(3) + b"from the future",
        member_assignment=b"\x00\x00" + assignment.encode_bytes(0),
    )
    return DescribeGroupsResponse(
        groups=[
            DescribedGroup(
                group_id=name, group_state="Stable", protocol_type="consumer", members=[member]
            )
            for name in request.groups
        ]
    )


def test_groups_are_described_by_their_coordinator(admin, coordinator, controller):
    coordinator.on(DescribeGroupsRequest, described)
    (group,) = admin.describe_groups(["billing"]).values()
    assert (group["group_id"], group["group_state"], group["error"]) == ("billing", "Stable", None)
    (member,) = group["members"]
    assert member["member_metadata"]["topics"] == ["orders"]
    assert member["member_assignment"]["assigned_partitions"] == [
        {"topic": "orders", "partitions": [0]}
    ]
    assert not controller.received(DescribeGroupsRequest)


def test_what_a_member_told_the_others_stays_as_it_is_if_it_cannot_be_read(admin, coordinator):
    def unreadable(request, version):
        response = described(request, version)
        response.groups[0].members[0].member_metadata = b"\x00\x01?"
        response.groups[0].members[0].member_assignment = b""
        return response

    coordinator.on(DescribeGroupsRequest, unreadable)
    (member,) = admin.describe_groups(["billing"])["billing"]["members"]
    assert (member["member_metadata"], member["member_assignment"]) == (b"\x00\x01?", b"")


def test_a_coordinator_that_moved_is_looked_for_again(admin, coordinator):
    def refused(request, version):
        moved = DescribedGroup(group_id="billing", error_code=NotCoordinatorError.code)
        return DescribeGroupsResponse(groups=[moved])

    coordinator.on(DescribeGroupsRequest, in_turn(refused, described))
    assert admin.describe_groups(["billing"])["billing"]["error"] is None
    assert len(coordinator.received(DescribeGroupsRequest)) == 2


def test_groups_are_deleted_by_their_coordinator(admin, coordinator):
    coordinator.on(
        DeleteGroupsRequest,
        DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id="billing"),
                DeletableGroupResult(group_id="busy", error_code=68),
            ]
        ),
    )
    assert admin.delete_groups(["billing", "busy"]) == {
        "billing": "OK",
        "busy": "NonEmptyGroupError",
    }


def test_every_broker_lists_its_groups(admin, controller, other):
    for broker, name in ((controller, "billing"), (other, "shipping")):
        listed = ListedGroup(group_id=name, protocol_type="consumer", group_state="Empty")
        broker.on(ListGroupsRequest, ListGroupsResponse(groups=[listed]))
    groups = admin.list_groups(states_filter=["Empty"])
    assert [one["group_id"] for one in groups] == ["billing", "shipping"]
    assert controller.received(ListGroupsRequest)[0].states_filter == ["Empty"]
    assert [one["group_id"] for one in admin.list_groups(broker_ids=[2])] == ["shipping"]


def test_a_broker_that_is_still_loading_its_groups_is_asked_again(admin, controller, other):
    listed = ListGroupsResponse(groups=[ListedGroup(group_id="billing")])
    controller.on(ListGroupsRequest, [ListGroupsResponse(error_code=14), listed])
    other.on(ListGroupsRequest, ListGroupsResponse())
    assert [one["group_id"] for one in admin.list_groups()] == ["billing"]
