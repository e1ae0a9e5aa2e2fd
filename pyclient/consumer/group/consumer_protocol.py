"""The bytes that members of a group exchange through the coordinator, behind their version.

The coordinator does not read them. A newer member may have written them, so a version above ours
is read as our newest one, and what lies behind its fields is not looked at.
"""

import struct
from collections.abc import Iterable
from typing import TypeVar

from pyclient.consumer.group.assignors.assignor import MemberSubscription
from pyclient.errors import ProtocolError
from pyclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyclient.protocol.messages.consumer_protocol import TopicPartition as TopicPartitions
from pyclient.protocol.schema import Message
from pyclient.types import TopicPartition

PROTOCOL_TYPE = "consumer"
"""The kind of group, in JoinGroup and SyncGroup."""

_VERSION = struct.Struct(">h")
_NEWEST = 3

MessageType = TypeVar("MessageType", bound=Message)


def encode_subscription(subscription: MemberSubscription) -> bytes:
    """What a member tells the leader, for JoinGroup."""
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=_by_topic(subscription.owned_partitions),
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    return _encode(message)


def decode_subscription(data: bytes, group_instance_id: str | None) -> MemberSubscription:
    """What a member told; its instance id comes beside it in the JoinGroup response."""
    message = _decode(ConsumerProtocolSubscription, data)
    return MemberSubscription(
        topics=tuple(message.topics),
        group_instance_id=group_instance_id,
        rack_id=message.rack_id or None,
        owned_partitions=tuple(_flat(message.owned_partitions)),
        generation_id=message.generation_id,
        user_data=message.user_data,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """What a member is to read, for SyncGroup."""
    return _encode(ConsumerProtocolAssignment(assigned_partitions=_by_topic(partitions)))


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """What this member is to read: nothing, if the leader left it out."""
    if not data:
        return []
    return _flat(_decode(ConsumerProtocolAssignment, data).assigned_partitions)


def _encode(message: Message) -> bytes:
    return _VERSION.pack(_NEWEST) + message.encode_bytes(_NEWEST)


def _decode(cls: type[MessageType], data: bytes) -> MessageType:
    if len(data) < _VERSION.size:
        raise ProtocolError(
            f"{len(data)} bytes are too few for a version", message_name=cls.__name__
        )
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise ProtocolError("the version is negative", message_name=cls.__name__, version=version)
    message, _ = cls.decode_from(data, _VERSION.size, min(version, _NEWEST))
    return message


def _by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    numbers: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        numbers.setdefault(topic, []).append(partition)
    return [TopicPartitions(topic=topic, partitions=found) for topic, found in numbers.items()]


def _flat(topics: Iterable[TopicPartitions]) -> list[TopicPartition]:
    return [TopicPartition(item.topic, number) for item in topics for number in item.partitions]
