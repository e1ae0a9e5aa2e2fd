"""ElectLeaders (API key 43): elect preferred or unclean leaders."""

from pyclient.protocol.primitives import INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class TopicPartitions(Struct):
    topic: str = field(STRING)
    partitions: list[int] = field(array(INT32))


class ElectLeadersRequest(Message, api_key=43, versions="0-2", flexible="2+"):
    """Elect leaders; null for all partitions."""

    election_type: int = field(INT8, versions="1+")  # 0 preferred, 1 unclean
    topic_partitions: list[TopicPartitions] | None = field(array(TopicPartitions), nullable="0+")
    timeout_ms: int = field(INT32, default=60000)


class PartitionResult(Struct):
    partition_id: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = field(STRING)
    partition_result: list[PartitionResult] = field(array(PartitionResult))


class ElectLeadersResponse(Message, api_key=43, versions="0-2", flexible="2+"):
    """How the elections went."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, versions="1+", ignorable=True)
    replica_election_results: list[ReplicaElectionResult] = field(array(ReplicaElectionResult))
