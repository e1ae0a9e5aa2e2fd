"""What members of a classic group tell each other inside JoinGroup and SyncGroup.

Each is written behind an int16 of its version. The group's coordinator never looks inside: a
member may be newer than its leader, so a reader takes a version above its own as its newest and
ignores the bytes behind what it knows.
"""

from pyclient.protocol.primitives import BYTES, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class TopicPartition(Struct):
    topic: str = field(STRING)
    partitions: list[int] = field(array(INT32))


class ConsumerProtocolSubscription(Message, versions="0-3", flexible="none"):
    """What a member wants to read, and what it read so far."""

    topics: list[str] = field(array(STRING))
    user_data: bytes | None = field(BYTES, nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = field(
        array(TopicPartition), versions="1+", ignorable=True
    )
    generation_id: int = field(INT32, versions="2+", default=-1, ignorable=True)
    rack_id: str | None = field(STRING, versions="3+", nullable="3+", default=None, ignorable=True)


class ConsumerProtocolAssignment(Message, versions="0-3", flexible="none"):
    """What a member is to read."""

    assigned_partitions: list[TopicPartition] = field(array(TopicPartition))
    user_data: bytes | None = field(BYTES, nullable="0+", default=None)
