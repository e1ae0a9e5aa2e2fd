"""AlterReplicaLogDirs (API key 34): move replicas between the log folders of a broker."""

from pyclient.protocol.primitives import INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class AlterReplicaLogDirTopic(Struct):
    name: str = field(STRING)
    partitions: list[int] = field(array(INT32))


class AlterReplicaLogDir(Struct):
    """A log folder and what is to move there."""

    path: str = field(STRING)
    topics: list[AlterReplicaLogDirTopic] = field(array(AlterReplicaLogDirTopic))


class AlterReplicaLogDirsRequest(Message, api_key=34, versions="1-2", flexible="2+"):
    """Move replicas to other log folders."""

    dirs: list[AlterReplicaLogDir] = field(array(AlterReplicaLogDir))


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = field(STRING)
    partitions: list[AlterReplicaLogDirPartitionResult] = field(
        array(AlterReplicaLogDirPartitionResult)
    )


class AlterReplicaLogDirsResponse(Message, api_key=34, versions="1-2", flexible="2+"):
    """Which replicas will move."""

    throttle_time_ms: int = field(INT32)
    results: list[AlterReplicaLogDirTopicResult] = field(array(AlterReplicaLogDirTopicResult))
