"""ListOffsets (API key 2): which offset belongs to a timestamp, or is first or last."""

from pyclient.protocol.primitives import INT8, INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field

# The largest timestamp's, the first on the leader's own disk, the last in remote storage, the
# first that is to go there.
_SPECIAL_TIMESTAMPS_SINCE = {-3: 7, -4: 8, -5: 9, -6: 11}


class ListOffsetsPartition(Struct):
    """The point in time to look up in one partition."""

    partition_index: int = field(INT32)
    current_leader_epoch: int = field(INT32, versions="4+", default=-1, ignorable=True)
    timestamp: int = field(INT64)  # -1 latest, -2 earliest, -3 the largest timestamp's


class ListOffsetsTopic(Struct):
    name: str = field(STRING)
    partitions: list[ListOffsetsPartition] = field(array(ListOffsetsPartition))


class ListOffsetsRequest(Message, api_key=2, versions="1-11", flexible="6+"):
    """Look up offsets by time."""

    replica_id: int = field(INT32)  # -1 for a consumer
    isolation_level: int = field(INT8, versions="2+")  # 0 read uncommitted, 1 read committed
    topics: list[ListOffsetsTopic] = field(array(ListOffsetsTopic))
    timeout_ms: int = field(INT32, versions="10+", ignorable=True)

    def version_floor(self) -> int:
        """Where the negative numbers that stand for no time first had their meaning."""
        first = (
            _SPECIAL_TIMESTAMPS_SINCE.get(one.timestamp, 0)
            for topic in self.topics
            for one in topic.partitions
        )
        return max(super().version_floor(), max(first, default=0))


class ListOffsetsPartitionResponse(Struct):
    """The offset found in one partition, or -1."""

    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    timestamp: int = field(INT64, default=-1)
    offset: int = field(INT64, default=-1)
    leader_epoch: int = field(INT32, versions="4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = field(STRING)
    partitions: list[ListOffsetsPartitionResponse] = field(array(ListOffsetsPartitionResponse))


class ListOffsetsResponse(Message, api_key=2, versions="1-11", flexible="6+"):
    """The offsets that were found."""

    throttle_time_ms: int = field(INT32, versions="2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field(array(ListOffsetsTopicResponse))
