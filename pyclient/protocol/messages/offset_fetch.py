"""OffsetFetch (API key 9): how far a group has read.

Up to version 7 a request asks for one group in `group_id` and `topics`; from 8 on for many, in
`groups`, and the response follows suit. A request that asks for one group in both ways can be sent
in any version. Version 10 names topics by id.
"""

from pyclient.protocol.primitives import BOOL, INT16, INT32, INT64, STRING, UUID, ZERO_UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field


class OffsetFetchRequestTopic(Struct):
    """Partitions of one topic, up to version 7."""

    name: str = field(STRING)
    partition_indexes: list[int] = field(array(INT32))


class OffsetFetchRequestTopics(Struct):
    """Partitions of one topic, from version 8 on."""

    name: str = field(STRING, versions="8-9", ignorable=True)
    topic_id: Uuid = field(UUID, versions="10+", ignorable=True)
    partition_indexes: list[int] = field(array(INT32))


class OffsetFetchRequestGroup(Struct):
    """One group, and the partitions to look up; null for all it has."""

    group_id: str = field(STRING)
    member_id: str | None = field(
        STRING, versions="9+", nullable="9+", default=None, ignorable=True
    )
    member_epoch: int = field(INT32, versions="9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field(
        array(OffsetFetchRequestTopics), nullable="0+"
    )


class OffsetFetchRequest(Message, api_key=9, versions="1-10", flexible="6+"):
    """Look up committed offsets."""

    group_id: str = field(STRING, versions="0-7", ignorable=True)
    topics: list[OffsetFetchRequestTopic] | None = field(
        array(OffsetFetchRequestTopic), versions="0-7", nullable="2-7", ignorable=True
    )
    groups: list[OffsetFetchRequestGroup] = field(
        array(OffsetFetchRequestGroup), versions="8+", ignorable=True
    )
    # Left out for brokers before 2.5, as Java's client does: they know no pending offsets.
    require_stable: bool = field(BOOL, versions="7+", ignorable=True)

    def version_cap(self, transaction_version: int = 0) -> int:
        """7 for a request that has a `group_id` only; 9 for topics by name.

        A request for all topics is one by name, too: from version 10 on the response would have
        ids only, and nothing about topics that were deleted.
        """
        if self.group_id and not self.groups:
            return 7
        for group in self.groups:
            if group.topics is None or any(one.topic_id == ZERO_UUID for one in group.topics):
                return 9
        return super().version_cap(transaction_version)

    def version_floor(self) -> int:
        """8 for a request that has `groups` only; 2 for all topics of a single one."""
        if self.groups and not self.group_id:
            return 8
        return 2 if self.topics is None else super().version_floor()


class OffsetFetchResponsePartition(Struct):
    """One partition's committed offset, up to version 7; -1 if none."""

    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, versions="5-7", default=-1, ignorable=True)
    metadata: str | None = field(STRING, nullable="0+")
    error_code: int = field(INT16)


class OffsetFetchResponseTopic(Struct):
    """The committed offsets of one topic, up to version 7."""

    name: str = field(STRING)
    partitions: list[OffsetFetchResponsePartition] = field(array(OffsetFetchResponsePartition))


class OffsetFetchResponsePartitions(Struct):
    """One partition's committed offset, from version 8 on; -1 if none."""

    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, default=-1)
    metadata: str | None = field(STRING, nullable="0+")
    error_code: int = field(INT16)


class OffsetFetchResponseTopics(Struct):
    """The committed offsets of one topic, from version 8 on."""

    name: str = field(STRING, versions="8-9", ignorable=True)
    topic_id: Uuid = field(UUID, versions="10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field(array(OffsetFetchResponsePartitions))


class OffsetFetchResponseGroup(Struct):
    group_id: str = field(STRING)
    topics: list[OffsetFetchResponseTopics] = field(array(OffsetFetchResponseTopics))
    error_code: int = field(INT16)


class OffsetFetchResponse(Message, api_key=9, versions="1-10", flexible="6+"):
    """The offsets that were committed."""

    throttle_time_ms: int = field(INT32, versions="3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field(array(OffsetFetchResponseTopic), versions="0-7")
    error_code: int = field(INT16, versions="2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field(array(OffsetFetchResponseGroup), versions="8+")
