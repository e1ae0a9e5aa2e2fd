"""OffsetForLeaderEpoch (API key 23): where a leader epoch ends, to find a diverging log."""

from pyclient.protocol.primitives import INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field

CONSUMER_ID = -1
"""The replica id of a client that is not a replica."""


class OffsetForLeaderPartition(Struct):
    """The leader epoch to look up in one partition."""

    partition: int = field(INT32)
    current_leader_epoch: int = field(INT32, default=-1)
    leader_epoch: int = field(INT32)


class OffsetForLeaderTopic(Struct):
    topic: str = field(STRING)
    partitions: list[OffsetForLeaderPartition] = field(array(OffsetForLeaderPartition))


class OffsetForLeaderEpochRequest(Message, api_key=23, versions="2-4", flexible="4+"):
    """Ask where leader epochs end."""

    replica_id: int = field(INT32, versions="3+", default=-2, ignorable=True)  # -1 for a consumer
    topics: list[OffsetForLeaderTopic] = field(array(OffsetForLeaderTopic))

    def version_floor(self) -> int:
        """3 for a consumer: before, it needs a permission that only brokers have."""
        return 3 if self.replica_id == CONSUMER_ID else super().version_floor()


class EpochEndOffset(Struct):
    """Where one epoch ends: the start of the next one."""

    error_code: int = field(INT16)
    partition: int = field(INT32)
    leader_epoch: int = field(INT32, default=-1)
    end_offset: int = field(INT64, default=-1)


class OffsetForLeaderTopicResult(Struct):
    topic: str = field(STRING)
    partitions: list[EpochEndOffset] = field(array(EpochEndOffset))


class OffsetForLeaderEpochResponse(Message, api_key=23, versions="2-4", flexible="4+"):
    """Where the epochs end."""

    throttle_time_ms: int = field(INT32)
    topics: list[OffsetForLeaderTopicResult] = field(array(OffsetForLeaderTopicResult))
