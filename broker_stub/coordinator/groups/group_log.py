"""Groups and offsets as records of `__consumer_offsets`, in Kafka's schemas.

A key starts with the number of its record type, a value with its version. A null value deletes.
"""

import struct
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar

from broker_stub.coordinator.groups.classic_group import ClassicGroup
from broker_stub.coordinator.groups.member import Member
from broker_stub.coordinator.groups.offsets import CommittedOffset
from pyclient.errors import CorruptRecordError
from pyclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pyclient.protocol.messages.join_group import JoinGroupRequestProtocol
from pyclient.protocol.schema import Message
from pyclient.types import TopicPartition

OFFSETS_TOPIC: Final = "__consumer_offsets"
_KEY_VERSION: Final = 0
_OFFSET_VALUE_VERSION: Final = 3
_EXPIRING_OFFSET_VALUE_VERSION: Final = 1
_GROUP_VALUE_VERSION: Final = 3
_PREFIX: Final = struct.Struct(">h")
# Version, offset, leader epoch, length of the metadata, commit timestamp.
_PLAIN_OFFSET_VALUE: Final = struct.Struct(">hqihq")

Value = TypeVar("Value", bound=Message)
KeyValue: TypeAlias = tuple[bytes, bytes | None]
Entry: TypeAlias = (
    tuple[OffsetCommitKey, OffsetCommitValue | None]
    | tuple[GroupMetadataKey, GroupMetadataValue | None]
)


def offset_record(
    group_id: str, partition: TopicPartition, offset: CommittedOffset | None
) -> KeyValue:
    """A committed offset, or its tombstone."""
    key = _offset_key(group_id, partition)
    if offset is None:
        return key, None
    if offset.expire_timestamp_ms < 0 and not offset.metadata:
        # By hand what the codec would write: nearly every commit is one of these.
        return key, _PLAIN_OFFSET_VALUE.pack(
            _OFFSET_VALUE_VERSION, offset.offset, offset.leader_epoch, 0, offset.commit_timestamp_ms
        )
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms,
    )
    has_expiry = offset.expire_timestamp_ms >= 0
    version = _EXPIRING_OFFSET_VALUE_VERSION if has_expiry else _OFFSET_VALUE_VERSION
    return key, _value(value, version)


@lru_cache(maxsize=4096)
def _offset_key(group_id: str, partition: TopicPartition) -> bytes:
    """Encoded once: a member commits the same partitions again and again."""
    return _key(
        OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)
    )


def committed_offset(value: OffsetCommitValue) -> CommittedOffset:
    """The offset that a record holds."""
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
    )


def group_record(group: ClassicGroup) -> KeyValue:
    """A group's generation and members."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.roster.leader_id,
        current_state_timestamp=-1 if group.state_since_ms is None else group.state_since_ms,
        members=[
            MemberMetadata(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                rebalance_timeout=one.rebalance_timeout_ms,
                session_timeout=one.session_timeout_ms,
                subscription=one.metadata(group.protocol_name),
                assignment=one.assignment,
            )
            for one in group.roster
        ],
    )
    return _key(GroupMetadataKey(group=group.group_id)), _value(value, _GROUP_VALUE_VERSION)


def group_tombstone(group_id: str) -> KeyValue:
    return _key(GroupMetadataKey(group=group_id)), None


def restore_group(group: ClassicGroup, value: GroupMetadataValue) -> None:
    """Give a new group the generation and members that its record holds."""
    protocol_name = value.protocol or ""
    group.generation_id = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    since_ms = value.current_state_timestamp
    # By id: nothing keeps a damaged record from naming a member twice.
    members = {one.member_id: _member(one, protocol_name) for one in value.members}
    group.restore(members.values(), value.leader, None if since_ms < 0 else since_ms)


def _member(metadata: MemberMetadata, protocol_name: str) -> Member:
    timeout_ms = metadata.rebalance_timeout
    member = Member(
        metadata.member_id,
        metadata.group_instance_id,
        metadata.client_id,
        metadata.client_host,
        metadata.session_timeout,
        metadata.session_timeout if timeout_ms < 0 else timeout_ms,  # version 0 has none
        [JoinGroupRequestProtocol(name=protocol_name, metadata=metadata.subscription)],
    )
    member.assignment = metadata.assignment
    return member


def read_entry(key: bytes | None, value: bytes | None) -> Entry:
    """One record of the topic.

    Raises:
        CorruptRecordError: there is no key, or it names a type that is not known here.
        ProtocolError: the key or the value cannot be decoded.
    """
    if key is None or len(key) < _PREFIX.size:
        raise CorruptRecordError("the key is too short for a record type")
    (record_type,) = _PREFIX.unpack_from(key)
    body = memoryview(key)[_PREFIX.size :]
    if record_type in (0, OffsetCommitKey.record_type):
        offset_value = None if value is None else _read_value(OffsetCommitValue, value)
        return OffsetCommitKey.decode(body, _KEY_VERSION), offset_value
    if record_type == GroupMetadataKey.record_type:
        group_value = None if value is None else _read_value(GroupMetadataValue, value)
        return GroupMetadataKey.decode(body, _KEY_VERSION), group_value
    raise CorruptRecordError(f"record type {record_type} is not known: a newer Kafka wrote it")


def _key(key: Message) -> bytes:
    return _PREFIX.pack(key.record_type) + key.encode_bytes(_KEY_VERSION)


def _value(value: Message, version: int) -> bytes:
    return _PREFIX.pack(version) + value.encode_bytes(version)


def _read_value(cls: type[Value], value: bytes) -> Value:
    if len(value) < _PREFIX.size:
        raise CorruptRecordError("the value is too short for a version")
    (version,) = _PREFIX.unpack_from(value)
    return cls.decode(memoryview(value)[_PREFIX.size :], version)
