"""Records of `__consumer_offsets` that classic groups and committed offsets are kept in.

A record's key is an int16, the `record_type`, and the key's fields; its value an int16, the
version, and the value's fields. No value is a tombstone.
"""

from pyclient.protocol.primitives import BYTES, INT32, INT64, STRING, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field


class LegacyOffsetCommitKey(Message, record_type=0, versions="0", flexible="none"):
    """Names a committed offset, as the first brokers that kept them did."""

    group: str = field(STRING)
    topic: str = field(STRING)
    partition: int = field(INT32)


class LegacyOffsetCommitValue(Message, record_type=0, versions="0", flexible="none"):
    """A committed offset in its first form."""

    offset: int = field(INT64)
    metadata: str = field(STRING)
    commit_timestamp: int = field(INT64)


class OffsetCommitKey(Message, record_type=1, versions="0", flexible="none"):
    """Names the committed offset of a group in one partition."""

    group: str = field(STRING)
    topic: str = field(STRING)
    partition: int = field(INT32)


class OffsetCommitValue(Message, record_type=1, versions="0-4", flexible="4+"):
    """The committed offset of one partition."""

    offset: int = field(INT64)
    leader_epoch: int = field(INT32, versions="3+", default=-1, ignorable=True)
    metadata: str = field(STRING)
    commit_timestamp: int = field(INT64)
    expire_timestamp: int = field(INT64, versions="1", default=-1, ignorable=True)
    topic_id: Uuid = field(UUID, versions="4+", tag=0, ignorable=True)


class GroupMetadataKey(Message, record_type=2, versions="0", flexible="none"):
    """Names a classic group."""

    group: str = field(STRING)


class MemberMetadata(Struct):
    """A member as the coordinator remembers it."""

    member_id: str = field(STRING)
    group_instance_id: str | None = field(
        STRING, versions="3+", nullable="3+", default=None, ignorable=True
    )
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    rebalance_timeout: int = field(INT32, versions="1+", default=-1, ignorable=True)
    session_timeout: int = field(INT32)
    subscription: bytes = field(BYTES)
    assignment: bytes = field(BYTES)


class GroupMetadataValue(Message, record_type=2, versions="0-4", flexible="4+"):
    """A classic group's generation and members."""

    protocol_type: str = field(STRING)
    generation: int = field(INT32)
    protocol: str | None = field(STRING, nullable="0+")
    leader: str | None = field(STRING, nullable="0+")
    current_state_timestamp: int = field(INT64, versions="2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field(array(MemberMetadata))
