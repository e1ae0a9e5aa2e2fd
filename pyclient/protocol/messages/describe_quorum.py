"""DescribeQuorum (API key 55): the controllers' quorum: leader, voters, observers."""

from pyclient.protocol.primitives import INT16, INT32, INT64, STRING, UINT16, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field


class PartitionData(Struct):
    """A partition of the metadata log."""

    partition_index: int = field(INT32)


class TopicData(Struct):
    topic_name: str = field(STRING)
    partitions: list[PartitionData] = field(array(PartitionData))


class DescribeQuorumRequest(Message, api_key=55, versions="0-2", flexible="0+"):
    """Describe the quorum of the metadata log."""

    topics: list[TopicData] = field(array(TopicData))


class ReplicaState(Struct):
    """How far one replica has got."""

    replica_id: int = field(INT32)
    replica_directory_id: Uuid = field(UUID, versions="2+")
    log_end_offset: int = field(INT64)
    last_fetch_timestamp: int = field(INT64, versions="1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = field(INT64, versions="1+", default=-1, ignorable=True)


class PartitionResult(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, versions="2+", nullable="2+", ignorable=True)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)
    high_watermark: int = field(INT64)
    current_voters: list[ReplicaState] = field(array(ReplicaState))
    observers: list[ReplicaState] = field(array(ReplicaState))


class TopicResult(Struct):
    topic_name: str = field(STRING)
    partitions: list[PartitionResult] = field(array(PartitionResult))


class Listener(Struct):
    """One address of a controller."""

    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)


class Node(Struct):
    node_id: int = field(INT32)
    listeners: list[Listener] = field(array(Listener))


class DescribeQuorumResponse(Message, api_key=55, versions="0-2", flexible="0+"):
    """The quorum as its leader sees it."""

    error_code: int = field(INT16)
    error_message: str | None = field(STRING, versions="2+", nullable="2+", ignorable=True)
    topics: list[TopicResult] = field(array(TopicResult))
    nodes: list[Node] = field(array(Node), versions="2+")
