"""Offsets of groups: one coordinator each, old brokers, errors that pass."""

import pytest

from pyclient.admin import MemberToRemove
from pyclient.errors import (
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    NoError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from pyclient.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from pyclient.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from pyclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
)
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pyclient.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from pyclient.types import OffsetAndMetadata, TopicPartition

FIRST = TopicPartition("orders", 0)
COORDINATORS = {"billing": 1, "shipping": 2}


def found(request, version):
    if version < 4:
        return FindCoordinatorResponse(node_id=COORDINATORS[request.key])
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=COORDINATORS[key])
            if key in COORDINATORS
            else Coordinator(key=key, node_id=-1, error_code=GroupAuthorizationFailedError.code)
            for key in request.coordinator_keys
        ]
    )


@pytest.fixture
def brokers(controller, other):
    """Broker 1 coordinates `billing`, broker 2 `shipping`; other groups are forbidden."""
    for broker in (controller, other):
        broker.on(FindCoordinatorRequest, found)
    return controller, other


def offsets(request, version):
    """The offset of each group is its coordinator's id."""
    if version >= 8:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group_id=group.group_id,
                    topics=[
                        OffsetFetchResponseTopics(
                            name="orders",
                            partitions=[
                                OffsetFetchResponsePartitions(
                                    committed_offset=COORDINATORS[group.group_id], metadata=""
                                )
                            ],
                        )
                    ],
                )
                for group in request.groups
            ]
        )
    partition = OffsetFetchResponsePartition(
        committed_offset=COORDINATORS[request.group_id], metadata=""
    )
    topic = OffsetFetchResponseTopic(name="orders", partitions=[partition])
    return OffsetFetchResponse(topics=[topic])


@pytest.mark.parametrize("versions", [(1, 10), (1, 7)], ids=["new brokers", "before Kafka 3.0"])
def test_offsets_come_from_each_groups_coordinator(admin, brokers, versions):
    for broker in brokers:
        broker.versions[OffsetFetchRequest.api_key] = versions
        broker.versions[FindCoordinatorRequest.api_key] = (0, 3 if versions[1] == 7 else 6)
        broker.cut()
        broker.on(OffsetFetchRequest, offsets)
    listed = admin.list_group_offsets(["billing", "shipping"])
    assert listed == {
        "billing": {FIRST: OffsetAndMetadata(1)},
        "shipping": {FIRST: OffsetAndMetadata(2)},
    }
    assert [len(broker.received(OffsetFetchRequest)) for broker in brokers] == [1, 1]


def test_lag_is_an_error_for_the_partition_that_has_one(admin, brokers):
    brokers[0].on(OffsetFetchRequest, offsets)
    lag = admin.lag("billing")[FIRST]
    assert (lag.committed, lag.end, lag.lag, lag.time_lag_ms) == (1, None, None, None)
    assert "topic 'orders'" in lag.error


def committed(*errors):
    """Answers with each error in turn."""
    return [
        OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name="orders",
                    partitions=[OffsetCommitResponsePartition(error_code=error.code)],
                )
            ]
        )
        for error in errors
    ]


@pytest.mark.parametrize("passing", [NotCoordinatorError, RebalanceInProgressError])
def test_a_commit_is_repeated_while_the_group_moves_or_rebalances(admin, brokers, passing):
    brokers[0].on(OffsetCommitRequest, committed(passing, NoError))
    altered = admin.alter_group_offsets("billing", {FIRST: OffsetAndMetadata(5, "note")})
    assert altered == {FIRST: NoError}
    first, again = brokers[0].received(OffsetCommitRequest)
    assert again == first
    (partition,) = again.topics[0].partitions
    assert (partition.committed_offset, partition.committed_metadata) == (5, "note")
    assert (again.member_id, again.generation_id_or_member_epoch) == ("", -1)


def test_an_error_of_a_partition_is_not_raised(admin, brokers):
    brokers[0].on(OffsetCommitRequest, committed(UnknownMemberIdError))
    assert admin.alter_group_offsets("billing", {FIRST: OffsetAndMetadata(5)}) == {
        FIRST: UnknownMemberIdError
    }


def test_an_error_of_the_group_is_raised_with_its_name(admin, brokers):
    brokers[0].on(OffsetDeleteRequest, OffsetDeleteResponse(error_code=69))
    with pytest.raises(GroupIdNotFoundError, match="group 'billing'"):
        admin.delete_group_offsets("billing", [FIRST])


def test_a_group_without_a_coordinator_does_not_fail_the_others(admin, brokers):
    for broker in brokers:
        broker.on(
            DescribeGroupsRequest,
            lambda request, _version: DescribeGroupsResponse(
                groups=[DescribedGroup(group_id=one, group_state="Empty") for one in request.groups]
            ),
        )
        broker.on(
            DeleteGroupsRequest,
            lambda request, _version: DeleteGroupsResponse(
                results=[DeletableGroupResult(group_id=one) for one in request.groups_names]
            ),
        )
    described = admin.describe_groups(["billing", "secret", "shipping"])
    assert [one.group_state for one in described.values()] == ["Empty", "", "Empty"]
    assert "group 'secret'" in described["secret"].error
    assert admin.delete_groups(["billing", "secret"]) == {
        "billing": "OK",
        "secret": "GroupAuthorizationFailedError",
    }


def test_members_leave_one_by_one_before_kafka_2_4(admin, brokers):
    coordinator = brokers[0]
    coordinator.versions[LeaveGroupRequest.api_key] = (0, 2)
    coordinator.cut()
    coordinator.on(LeaveGroupRequest, [LeaveGroupResponse(), LeaveGroupResponse(error_code=25)])
    removed = admin.remove_group_members("billing", [MemberToRemove("a"), MemberToRemove("b")])
    assert removed == {"a": NoError, "b": UnknownMemberIdError}
    assert [one.member_id for one in coordinator.received(LeaveGroupRequest)] == ["a", "b"]
    with pytest.raises(UnsupportedVersionError, match=r"LeaveGroupRequest.*serves 0 to 2"):
        admin.remove_group_members("billing", [MemberToRemove(group_instance_id="till")])
