"""ConsumerGroupDescribe (API key 69): members and state of consumer groups (KIP-848)."""

from pyclient.protocol.primitives import BOOL, INT8, INT16, INT32, STRING, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field, struct


class ConsumerGroupDescribeRequest(Message, api_key=69, versions="0-1", flexible="0+"):
    group_ids: list[str] = field(array(STRING))
    include_authorized_operations: bool = field(BOOL)


class TopicPartitions(Struct):
    topic_id: Uuid = field(UUID)
    topic_name: str = field(STRING)
    partitions: list[int] = field(array(INT32))


class Assignment(Struct):
    """Partitions that a member reads, or is to read."""

    topic_partitions: list[TopicPartitions] = field(array(TopicPartitions))


class Member(Struct):
    """A member, its subscription and its assignments."""

    member_id: str = field(STRING)
    instance_id: str | None = field(STRING, nullable="0+", default=None)
    rack_id: str | None = field(STRING, nullable="0+", default=None)
    member_epoch: int = field(INT32)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = field(array(STRING))
    subscribed_topic_regex: str | None = field(STRING, nullable="0+", default=None)
    assignment: Assignment = field(struct(Assignment))
    target_assignment: Assignment = field(struct(Assignment))
    # -1 unknown, 0 classic, 1 consumer
    member_type: int = field(INT8, versions="1+", default=-1, ignorable=True)


class DescribedGroup(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    group_id: str = field(STRING)
    group_state: str = field(STRING)
    group_epoch: int = field(INT32)
    assignment_epoch: int = field(INT32)
    assignor_name: str = field(STRING)
    members: list[Member] = field(array(Member))
    authorized_operations: int = field(INT32, default=-(2**31))


class ConsumerGroupDescribeResponse(Message, api_key=69, versions="0-1", flexible="0+"):
    """The groups that were asked for."""

    throttle_time_ms: int = field(INT32)
    groups: list[DescribedGroup] = field(array(DescribedGroup))
