"""Groups and offsets as records of `__consumer_offsets`, in Kafka's own schemas.

A key starts with the number of its record type, a value with its version; a null value deletes.
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias, TypeVar

from broker_stub.coordinator.offsets import CommittedOffset
from pyclient.errors import CorruptRecordError
from pyclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from pyclient.protocol.schema import Message
from pyclient.types import TopicPartition

OFFSETS_TOPIC: Final = "__consumer_offsets"
_KEY_VERSION: Final = 0
_OFFSET_VALUE_VERSION: Final = 3
_GROUP_VALUE_VERSION: Final = 3
_PREFIX: Final = struct.Struct(">h")

Value = TypeVar("Value", bound=Message)
KeyValue: TypeAlias = tuple[bytes, bytes | None]
Entry: TypeAlias = (
    tuple[OffsetCommitKey, OffsetCommitValue | None]
    | tuple[GroupMetadataKey, GroupMetadataValue | None]
)


def partition_for_group(group_id: str, partition_count: int) -> int:
    """The partition of `__consumer_offsets` that holds a group: Java's hash, made positive."""
    units = struct.iter_unpack("<H", group_id.encode("utf-16-le", "surrogatepass"))
    hash_code = 0
    for (unit,) in units:
        hash_code = (31 * hash_code + unit) & 0xFFFFFFFF
    signed = hash_code - (1 << 32) if hash_code >= 1 << 31 else hash_code
    # Java's abs of the least integer is negative; Kafka takes 0 for it.
    return 0 if signed == -(1 << 31) else abs(signed) % partition_count


def offset_record(
    group_id: str, partition: TopicPartition, offset: CommittedOffset | None
) -> KeyValue:
    """A committed offset, or its tombstone."""
    key = OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)
    if offset is None:
        return _key(key), None
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
    )
    return _key(key), _value(value, _OFFSET_VALUE_VERSION)


def group_record(group_id: str, value: GroupMetadataValue | None) -> KeyValue:
    """A group's generation and members, or its tombstone."""
    key = _key(GroupMetadataKey(group=group_id))
    return key, None if value is None else _value(value, _GROUP_VALUE_VERSION)


def read_entry(key: bytes | None, value: bytes | None) -> Entry | None:
    """One record of the topic; None for a type that is not ours to read."""
    if key is None or len(key) < _PREFIX.size:
        raise CorruptRecordError(f"a record of {OFFSETS_TOPIC} without a key")
    (record_type,) = _PREFIX.unpack_from(key)
    body = memoryview(key)[_PREFIX.size :]
    if record_type in (0, OffsetCommitKey.record_type):
        offset_value = None if value is None else _read_value(OffsetCommitValue, value)
        return OffsetCommitKey.decode(body, _KEY_VERSION), offset_value
    if record_type == GroupMetadataKey.record_type:
        group_value = None if value is None else _read_value(GroupMetadataValue, value)
        return GroupMetadataKey.decode(body, _KEY_VERSION), group_value
    return None


def _key(key: Message) -> bytes:
    return _PREFIX.pack(key.record_type) + key.encode_bytes(_KEY_VERSION)


def _value(value: Message, version: int) -> bytes:
    return _PREFIX.pack(version) + value.encode_bytes(version)


def _read_value(cls: type[Value], value: bytes) -> Value:
    (version,) = _PREFIX.unpack_from(value)
    return cls.decode(memoryview(value)[_PREFIX.size :], version)
