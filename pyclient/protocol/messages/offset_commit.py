"""OffsetCommit (API key 8): a group keeps how far it has read.

Version 10 names topics by id. A member of a classic group sends its generation where a member
of a consumer group (9+) sends its epoch: one field, two meanings.
"""

from pyclient.protocol.primitives import INT16, INT32, INT64, STRING, UUID, ZERO_UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field


class OffsetCommitRequestPartition(Struct):
    """The offset to keep for one partition: the next to read."""

    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)  # the next offset to read
    committed_leader_epoch: int = field(INT32, versions="6+", default=-1, ignorable=True)
    committed_metadata: str | None = field(STRING, nullable="0+")


class OffsetCommitRequestTopic(Struct):
    name: str = field(STRING, versions="0-9", ignorable=True)
    topic_id: Uuid = field(UUID, versions="10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field(array(OffsetCommitRequestPartition))


class OffsetCommitRequest(Message, api_key=8, versions="2-10", flexible="8+"):
    """Commit a group's offsets."""

    group_id: str = field(STRING)
    generation_id_or_member_epoch: int = field(INT32, default=-1)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, versions="7+", nullable="7+", default=None)
    retention_time_ms: int = field(INT64, versions="2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field(array(OffsetCommitRequestTopic))

    def version_cap(self, transaction_version: int = 0) -> int:
        """9 while a topic id is missing."""
        if any(topic.topic_id == ZERO_UUID for topic in self.topics):
            return 9
        return super().version_cap(transaction_version)


class OffsetCommitResponsePartition(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class OffsetCommitResponseTopic(Struct):
    name: str = field(STRING, versions="0-9", ignorable=True)
    topic_id: Uuid = field(UUID, versions="10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field(array(OffsetCommitResponsePartition))


class OffsetCommitResponse(Message, api_key=8, versions="2-10", flexible="8+"):
    """Which offsets were kept."""

    throttle_time_ms: int = field(INT32, versions="3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field(array(OffsetCommitResponseTopic))
