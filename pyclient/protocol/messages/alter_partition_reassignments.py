"""AlterPartitionReassignments (API key 45): move partitions to other brokers, or call it off."""

from pyclient.protocol.primitives import BOOL, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class ReassignablePartition(Struct):
    """A partition's new replicas; null calls a move off."""

    partition_index: int = field(INT32)
    replicas: list[int] | None = field(array(INT32), nullable="0+", default=None)


class ReassignableTopic(Struct):
    name: str = field(STRING)
    partitions: list[ReassignablePartition] = field(array(ReassignablePartition))


class AlterPartitionReassignmentsRequest(Message, api_key=45, versions="0-1", flexible="0+"):
    """Start or call off moves of partitions."""

    timeout_ms: int = field(INT32, default=60000)
    allow_replication_factor_change: bool = field(BOOL, versions="1+", default=True)
    topics: list[ReassignableTopic] = field(array(ReassignableTopic))


class ReassignablePartitionResponse(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


class ReassignableTopicResponse(Struct):
    name: str = field(STRING)
    partitions: list[ReassignablePartitionResponse] = field(array(ReassignablePartitionResponse))


class AlterPartitionReassignmentsResponse(Message, api_key=45, versions="0-1", flexible="0+"):
    """Which partitions will move."""

    throttle_time_ms: int = field(INT32)
    allow_replication_factor_change: bool = field(BOOL, versions="1+", default=True, ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    responses: list[ReassignableTopicResponse] = field(array(ReassignableTopicResponse))
