"""DescribeTopicPartitions (API key 75): partitions of topics, page by page."""

from pyclient.protocol.primitives import BOOL, INT16, INT32, STRING, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field, struct


class TopicRequest(Struct):
    name: str = field(STRING)


class Cursor(Struct):
    """Where a page starts: a topic and a partition of it."""

    topic_name: str = field(STRING)
    partition_index: int = field(INT32)


class DescribeTopicPartitionsRequest(Message, api_key=75, versions="0", flexible="0+"):
    """Describe topics from a cursor on."""

    topics: list[TopicRequest] = field(array(TopicRequest))
    response_partition_limit: int = field(INT32, default=2000)
    cursor: Cursor | None = field(struct(Cursor), nullable="0+", default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    """A partition's leader and replicas, the eligible ones too."""

    error_code: int = field(INT16)
    partition_index: int = field(INT32)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32, default=-1)
    replica_nodes: list[int] = field(array(INT32))
    isr_nodes: list[int] = field(array(INT32))
    eligible_leader_replicas: list[int] | None = field(array(INT32), nullable="0+", default=None)
    last_known_elr: list[int] | None = field(array(INT32), nullable="0+", default=None)
    offline_replicas: list[int] = field(array(INT32))


class DescribeTopicPartitionsResponseTopic(Struct):
    """A topic and the partitions of it on this page."""

    error_code: int = field(INT16)
    name: str | None = field(STRING, nullable="0+")
    topic_id: Uuid = field(UUID)
    is_internal: bool = field(BOOL)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(
        array(DescribeTopicPartitionsResponsePartition)
    )
    topic_authorized_operations: int = field(INT32, default=-(2**31))


class DescribeTopicPartitionsResponse(Message, api_key=75, versions="0", flexible="0+"):
    """One page, and the cursor of the next."""

    throttle_time_ms: int = field(INT32)
    topics: list[DescribeTopicPartitionsResponseTopic] = field(
        array(DescribeTopicPartitionsResponseTopic)
    )
    next_cursor: Cursor | None = field(struct(Cursor), nullable="0+", default=None)
