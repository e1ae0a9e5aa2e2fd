"""OffsetCommit, versions 2-10: from the frame to the group's log, without message objects.

Serving thread only.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, TypeAlias

from broker_stub.coordinator.groups.commit_offsets import (
    CommitResults,
    OffsetCommit,
    PartitionOffset,
    commit_offsets,
)
from broker_stub.data_path.wire import (
    INT16,
    INT32,
    NULL,
    UNREADABLE,
    Unfamiliar,
    body_position,
    compact_string,
    compact_topic_head,
    pack_compact_topic_head,
    pack_topic_head,
    string,
    topic_head,
)
from broker_stub.handlers.offset_commit import BY_ID_FROM, NAMES_MISSING_GROUP_FROM
from broker_stub.request import Parked, Reply, RequestContext
from pyclient.protocol.primitives import Uuid
from pyclient.varint import decode_uvarint, encode_uvarint

if TYPE_CHECKING:
    from broker_stub.node import Node

_THROTTLE_FROM: Final = 3
_RETENTION_UP_TO: Final = 4
_LEADER_EPOCH_FROM: Final = 6
_INSTANCE_FROM: Final = 7
_FLEXIBLE_FROM: Final = 8
_NO_EPOCH: Final = -1
_NO_RETENTION: Final = -1

_INT64: Final = struct.Struct(">q")
_WITHOUT_EPOCH: Final = struct.Struct(">iq")  # index, offset
_PARTITION: Final = struct.Struct(">iqi")  # ... and leader epoch
_OUTCOME: Final = struct.Struct(">ih")  # index, error code
_FLEXIBLE_OUTCOME: Final = struct.Struct(">ihb")  # ... and no tagged fields
_HEAD: Final = struct.Struct(">ii")  # length, correlation id
_FLEXIBLE_HEAD: Final = struct.Struct(">iibi")  # ... with tags, throttle time

_Topics: TypeAlias = list[tuple[str | None, list[PartitionOffset]]]


def serve(node: Node, frame: memoryview, context: RequestContext) -> Reply | Parked[Reply] | None:
    """Commit the offsets; None, with nothing done, if the handler has to do it."""
    version = context.api_version
    correlation_id = context.correlation_id
    topic_ids: list[Uuid] = []
    try:
        if version >= _FLEXIBLE_FROM:
            commit = _parse_flexible(node, frame, version, topic_ids)
        else:
            commit = _parse(frame, version)
    except UNREADABLE:
        return None

    def encode(results: CommitResults) -> Reply:
        if version >= _FLEXIBLE_FROM:
            return _pack_flexible(correlation_id, results, topic_ids, version >= BY_ID_FROM)
        return _pack(version, correlation_id, results)

    return commit_offsets(node, commit, encode)


def _parse(frame: memoryview, version: int) -> OffsetCommit:
    group_id, position = string(frame, body_position(frame, flexible=False))
    (generation_id,) = INT32.unpack_from(frame, position)
    member_id, position = string(frame, position + INT32.size)
    instance_id = None
    if version >= _INSTANCE_FROM:
        instance_id, position = _nullable_string(frame, position)
    retention_ms = _NO_RETENTION
    if version <= _RETENTION_UP_TO:
        (retention_ms,) = _INT64.unpack_from(frame, position)
        position += _INT64.size
    (topic_count,) = INT32.unpack_from(frame, position)
    position += INT32.size
    if topic_count < 0:
        raise Unfamiliar
    topics: _Topics = []
    for _ in range(topic_count):
        name, count, position = topic_head(frame, position)
        partitions: list[PartitionOffset] = []
        for _ in range(count):
            leader_epoch = _NO_EPOCH
            if version >= _LEADER_EPOCH_FROM:
                index, offset, leader_epoch = _PARTITION.unpack_from(frame, position)
                position += _PARTITION.size
            else:
                index, offset = _WITHOUT_EPOCH.unpack_from(frame, position)
                position += _WITHOUT_EPOCH.size
            metadata, position = _nullable_string(frame, position)
            partitions.append((index, offset, leader_epoch, metadata))
        topics.append((name, partitions))
    return OffsetCommit(
        group_id, generation_id, member_id, instance_id, retention_ms, topics, False
    )


def _nullable_string(frame: memoryview, position: int) -> tuple[str | None, int]:
    (length,) = INT16.unpack_from(frame, position)
    return (None, position + INT16.size) if length == NULL else string(frame, position)


def _parse_flexible(
    node: Node, frame: memoryview, version: int, topic_ids: list[Uuid]
) -> OffsetCommit:
    """The request; `topic_ids` gets the ids of its topics."""
    by_id = version >= BY_ID_FROM
    group_id, position = compact_string(frame, body_position(frame, flexible=True))
    (generation_id,) = INT32.unpack_from(frame, position)
    member_id, position = compact_string(frame, position + INT32.size)
    instance_id = None
    if frame[position]:
        instance_id, position = compact_string(frame, position)
    else:
        position += 1
    topic_count, position = decode_uvarint(frame, position)
    topics: _Topics = []
    for _ in range(topic_count - 1):
        name, topic_id, count, position = compact_topic_head(frame, position, by_id=by_id)
        topic_ids.append(topic_id)
        partitions: list[PartitionOffset] = []
        for _ in range(count):
            index, offset, leader_epoch = _PARTITION.unpack_from(frame, position)
            position += _PARTITION.size
            metadata: str | None = ""
            length = frame[position]
            if length == 1:  # an empty string, which most send
                position += 1
            elif length:
                metadata, position = compact_string(frame, position)
            else:
                metadata = None
                position += 1
            if frame[position]:
                raise Unfamiliar
            position += 1
            partitions.append((index, offset, leader_epoch, metadata))
        if frame[position]:
            raise Unfamiliar
        position += 1
        topics.append((node.image.topic_name(topic_id) if by_id else name, partitions))
    if not topic_count or frame[position]:
        raise Unfamiliar
    return OffsetCommit(
        group_id,
        generation_id,
        member_id,
        instance_id,
        _NO_RETENTION,
        topics,
        version >= NAMES_MISSING_GROUP_FROM,
    )


def _pack(version: int, correlation_id: int, results: CommitResults) -> Reply:
    pieces = [bytes(INT32.size)] if version >= _THROTTLE_FROM else []
    pieces.append(INT32.pack(len(results)))
    for name, outcomes in results:
        pieces.append(pack_topic_head(name or "", len(outcomes)))
        pieces += [_OUTCOME.pack(index, code) for index, code in outcomes]
    body = b"".join(pieces)
    return Reply([_HEAD.pack(INT32.size + len(body), correlation_id) + body])


def _pack_flexible(
    correlation_id: int, results: CommitResults, topic_ids: list[Uuid], by_id: bool
) -> Reply:
    pieces = [encode_uvarint(len(results) + 1)]
    for topic_id, (name, outcomes) in zip(topic_ids, results, strict=True):
        pieces.append(pack_compact_topic_head(name or "", topic_id, len(outcomes), by_id=by_id))
        pieces += [_FLEXIBLE_OUTCOME.pack(index, code, 0) for index, code in outcomes]
        pieces.append(b"\x00")
    pieces.append(b"\x00")
    body = b"".join(pieces)
    length = _FLEXIBLE_HEAD.size - INT32.size + len(body)
    return Reply([_FLEXIBLE_HEAD.pack(length, correlation_id, 0, 0) + body])
