"""What members of a group tell each other through the coordinator: bytes behind their version.

The coordinator does not read them. A newer member may have written them, so a version above ours
is read as our newest one, and what lies behind its fields is not looked at.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from pyclient.consumer.group.topic_partitions import (
    PartitionsByTopic,
    decode_partitions,
    encode_partitions,
    flat,
)
from pyclient.errors import ProtocolError
from pyclient.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from pyclient.protocol.messages.consumer_protocol import TopicPartition as TopicPartitions
from pyclient.protocol.messages.join_group import JoinGroupResponseMember
from pyclient.types import TopicPartition

PROTOCOL_TYPE = "consumer"
"""The kind of group, in JoinGroup and SyncGroup."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_NEWEST = 3
_NULL = -1


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What one member told the leader about itself.

    Attributes:
        owned_partitions: what it read when it joined; empty under the eager protocol.
        generation_id: the generation in which it got those; -1 if it does not say.
        user_data: what its assignor added (`subscription_user_data`).
    """

    topics: tuple[str, ...]
    group_instance_id: str | None = None
    rack_id: str | None = None
    owned_partitions: PartitionsByTopic = field(default_factory=dict)
    generation_id: int = -1
    user_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one member is to read.

    Attributes:
        partitions: the partition numbers by topic.
        user_data: handed to the member's assignor (`on_assignment`).
    """

    partitions: PartitionsByTopic = field(default_factory=dict)
    user_data: bytes | None = None

    def topic_partitions(self) -> list[TopicPartition]:
        """The partitions one by one."""
        return flat(self.partitions)


def encode_subscription(subscription: MemberSubscription) -> bytes:
    """What a member tells the leader, for JoinGroup."""
    owned = subscription.owned_partitions
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            TopicPartitions(topic=topic, partitions=sorted(owned[topic])) for topic in sorted(owned)
        ],
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    return _INT16.pack(_NEWEST) + message.encode_bytes(_NEWEST)


def decode_subscription(data: bytes, group_instance_id: str | None) -> MemberSubscription:
    """What a member told; its instance id comes beside it in the JoinGroup response."""
    return _SubscriptionDecoder().decode(data, group_instance_id)


def decode_subscriptions(
    members: Iterable[JoinGroupResponseMember],
) -> dict[str, MemberSubscription]:
    """What each member of a group told, by member id."""
    decoder = _SubscriptionDecoder()
    return {
        member.member_id: decoder.decode(member.metadata, member.group_instance_id)
        for member in members
    }


def encode_assignment(assignment: Assignment) -> bytes:
    """What a member is to read, for SyncGroup."""
    user_data = assignment.user_data
    return b"".join(
        (
            _INT16.pack(_NEWEST),
            encode_partitions(assignment.partitions),
            _INT32.pack(_NULL if user_data is None else len(user_data)),
            user_data or b"",
        )
    )


def decode_assignment(data: bytes) -> Assignment:
    """What this member is to read: nothing, if the leader left it out."""
    if not data:
        return Assignment()
    try:
        _version(data)
        partitions, position = decode_partitions(data, _INT16.size)
        return Assignment(partitions, _nullable_bytes(data, position)[0])
    except struct.error as error:
        raise ProtocolError(f"malformed assignment: {error}") from error


class _SubscriptionDecoder:
    """Decodes the subscriptions of one group, most of whose members name the same topics."""

    def __init__(self) -> None:
        self._topics: tuple[str, ...] = ()
        self._topics_bytes = _INT32.pack(0)

    def decode(self, data: bytes, group_instance_id: str | None) -> MemberSubscription:
        try:
            version = min(_version(data), _NEWEST)
            topics, position = self._decode_topics(data)
            user_data, position = _nullable_bytes(data, position)
            owned: PartitionsByTopic = {}
            generation_id, rack_id = -1, None
            if version >= 1:
                owned, position = decode_partitions(data, position)
            if version >= 2:
                (generation_id,) = _INT32.unpack_from(data, position)
            if version >= 3:
                rack_id = _nullable_string(data, position + _INT32.size)
        except (struct.error, UnicodeDecodeError) as error:
            raise ProtocolError(f"malformed subscription: {error}") from error
        return MemberSubscription(
            topics, group_instance_id, rack_id or None, owned, generation_id, user_data
        )

    def _decode_topics(self, data: bytes) -> tuple[tuple[str, ...], int]:
        start = position = _INT16.size
        if data.startswith(self._topics_bytes, start):
            return self._topics, start + len(self._topics_bytes)
        (count,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        topics = []
        for _ in range(count):
            (length,) = _INT16.unpack_from(data, position)
            end = position + _INT16.size + length
            if length < 0 or end > len(data):
                raise ProtocolError(f"a topic name of {length} bytes in a subscription")
            topics.append(data[position + _INT16.size : end].decode())
            position = end
        self._topics, self._topics_bytes = tuple(topics), data[start:position]
        return self._topics, position


def _version(data: bytes) -> int:
    version: int = _INT16.unpack_from(data)[0]
    if version < 0:
        raise ProtocolError(f"version {version} of the consumer protocol")
    return version


def _nullable_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    (length,) = _INT32.unpack_from(data, position)
    start = position + _INT32.size
    if length == _NULL:
        return None, start
    if length < 0 or start + length > len(data):
        raise ProtocolError(f"{length} bytes of user data do not fit in {len(data)} bytes")
    return data[start : start + length], start + length


def _nullable_string(data: bytes, position: int) -> str | None:
    (length,) = _INT16.unpack_from(data, position)
    start = position + _INT16.size
    if length < 0:
        return None
    if start + length > len(data):
        raise ProtocolError(f"a rack id of {length} bytes does not fit in {len(data)} bytes")
    return data[start : start + length].decode()
