"""Records of `__consumer_offsets` that consumer groups (KIP-848) are kept in.

Framed as in `group_records`: the `record_type` in front of a key, the version in front of a value.
"""

from pyclient.protocol.primitives import BYTES, INT8, INT32, INT64, STRING, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field, struct


class ConsumerGroupMetadataKey(Message, record_type=3, versions="0", flexible="none"):
    """Names a consumer group's epoch."""

    group_id: str = field(STRING)


class ConsumerGroupMetadataValue(Message, record_type=3, versions="0", flexible="0+"):
    """A consumer group's epoch."""

    epoch: int = field(INT32)
    metadata_hash: int = field(INT64, tag=0)


class ConsumerGroupPartitionMetadataKey(Message, record_type=4, versions="0", flexible="none"):
    """Names what a group knew of its topics."""

    group_id: str = field(STRING)


class PartitionMetadata(Struct):
    """A partition and the racks of its replicas."""

    partition: int = field(INT32)
    racks: list[str] = field(array(STRING))


class TopicMetadata(Struct):
    topic_id: Uuid = field(UUID)
    topic_name: str = field(STRING)
    num_partitions: int = field(INT32)
    partition_metadata: list[PartitionMetadata] = field(array(PartitionMetadata))


class ConsumerGroupPartitionMetadataValue(Message, record_type=4, versions="0", flexible="0+"):
    """The topics as the group's epoch saw them; no longer written."""

    topics: list[TopicMetadata] = field(array(TopicMetadata))


class ConsumerGroupMemberMetadataKey(Message, record_type=5, versions="0", flexible="none"):
    """Names a member."""

    group_id: str = field(STRING)
    member_id: str = field(STRING)


class ClassicProtocol(Struct):
    """An assignor that a classic member supports, with its subscription."""

    name: str = field(STRING)
    metadata: bytes = field(BYTES)


class ClassicMemberMetadata(Struct):
    """What a member that speaks the classic protocol joined with."""

    session_timeout_ms: int = field(INT32)
    supported_protocols: list[ClassicProtocol] = field(array(ClassicProtocol))


class ConsumerGroupMemberMetadataValue(Message, record_type=5, versions="0", flexible="0+"):
    """A member and its subscription."""

    instance_id: str | None = field(STRING, nullable="0+")
    rack_id: str | None = field(STRING, nullable="0+")
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = field(array(STRING))
    subscribed_topic_regex: str | None = field(STRING, nullable="0+")
    rebalance_timeout_ms: int = field(INT32, default=-1)
    server_assignor: str | None = field(STRING, nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = field(
        struct(ClassicMemberMetadata), nullable="0+", tag=0
    )


class ConsumerGroupTargetAssignmentMetadataKey(
    Message, record_type=6, versions="0", flexible="none"
):
    """Names the epoch of a group's target assignment."""

    group_id: str = field(STRING)


class ConsumerGroupTargetAssignmentMetadataValue(
    Message, record_type=6, versions="0", flexible="0+"
):
    """The group epoch that the target assignment is for."""

    assignment_epoch: int = field(INT32)
    assignment_timestamp: int = field(INT64, tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Message, record_type=7, versions="0", flexible="none"):
    """Names a member's target assignment."""

    group_id: str = field(STRING)
    member_id: str = field(STRING)


class TopicPartition(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[int] = field(array(INT32))


class ConsumerGroupTargetAssignmentMemberValue(Message, record_type=7, versions="0", flexible="0+"):
    """What a member is to read in the end."""

    topic_partitions: list[TopicPartition] = field(array(TopicPartition))


class ConsumerGroupCurrentMemberAssignmentKey(
    Message, record_type=8, versions="0", flexible="none"
):
    """Names a member's current assignment."""

    group_id: str = field(STRING)
    member_id: str = field(STRING)


class TopicPartitions(Struct):
    """Partitions of one topic, and the epochs they were assigned in."""

    topic_id: Uuid = field(UUID)
    partitions: list[int] = field(array(INT32))
    assignment_epochs: list[int] | None = field(array(INT32), nullable="0+", tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(
    Message, record_type=8, versions="0", flexible="0+"
):
    """What a member reads, and what it has yet to give up."""

    member_epoch: int = field(INT32)
    previous_member_epoch: int = field(INT32)
    state: int = field(INT8)  # 0 stable, 1 revokes partitions, 2 waits for others to
    assigned_partitions: list[TopicPartitions] = field(array(TopicPartitions))
    partitions_pending_revocation: list[TopicPartitions] = field(array(TopicPartitions))


class ConsumerGroupRegularExpressionKey(Message, record_type=16, versions="0", flexible="none"):
    """Names a pattern that members subscribe to."""

    group_id: str = field(STRING)
    regular_expression: str = field(STRING)


class ConsumerGroupRegularExpressionValue(Message, record_type=16, versions="0", flexible="0+"):
    """The topics a pattern matched when it was last resolved."""

    topics: list[str] = field(array(STRING))
    version: int = field(INT64)
    timestamp: int = field(INT64)
