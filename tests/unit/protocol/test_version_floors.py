"""What a message holds may rule old versions out."""

import pytest

from pyclient.errors import UnsupportedVersionError
from pyclient.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pyclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pyclient.protocol.messages.list_groups import ListGroupsRequest
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.protocol.registry import ApiVersionRange, choose_version
from pyclient.protocol.schema import Message


def offsets_at(*timestamps: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(timestamp=one) for one in timestamps]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=partitions)])


def topic(partitions: int, replicas: int, *assignments: int) -> CreateTopicsRequest:
    made = CreatableTopic(
        name="t",
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[CreatableReplicaAssignment(broker_ids=[one]) for one in assignments],
    )
    return CreateTopicsRequest(topics=[made])


@pytest.mark.parametrize(
    ("request_", "floor"),
    [
        (topic(1, 1), 2),
        (topic(-1, 1), 4),
        (topic(1, -1), 4),
        (topic(-1, -1, 3), 2),
        (DeleteTopicsRequest(topic_names=["t"]), 1),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6),
        (MetadataRequest(topics=None), 1),
        (MetadataRequest(topics=[]), 0),
        (MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 0),
        (MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=b"1" * 16)]), 12),
        (LeaveGroupRequest(member_id="m"), 0),
        (LeaveGroupRequest(members=[MemberIdentity(member_id="m")]), 3),
        (LeaveGroupRequest(member_id="m", members=[MemberIdentity(member_id="m")]), 0),
        (ListGroupsRequest(), 0),
        (ListGroupsRequest(states_filter=["Stable"]), 4),
        (ListGroupsRequest(states_filter=["Stable"], types_filter=["classic"]), 5),
        (ListOffsetsRequest(), 1),
        (offsets_at(-1, -2, 1_000), 1),
        (offsets_at(-2, -3), 7),
        (offsets_at(-4), 8),
        (offsets_at(-5), 9),
        (offsets_at(-6), 11),
    ],
    ids=lambda value: f"{type(value).__name__}" if isinstance(value, Message) else f"{value}",
)
def test_floor(request_: Message, floor: int) -> None:
    assert request_.version_floor() == floor
    assert floor in request_.versions
    request_.encode(floor)


def test_a_broker_below_the_floor_is_told_by_both_ranges() -> None:
    with pytest.raises(
        UnsupportedVersionError, match=r"versions 7 to 11, the broker serves 1 to 5"
    ):
        choose_version(offsets_at(-3), ApiVersionRange(1, 5))
