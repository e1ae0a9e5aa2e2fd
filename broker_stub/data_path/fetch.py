"""Fetch, versions 4-17: from the frame to file ranges, without message objects.

The parts of a response are bytes and, between them, records as a `FileSlice`. Errors of partitions
are packed here too; a response that names a leader, or fails as a whole, is left to the codec.
Serving thread only.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from broker_stub.data_path.wire import (
    INT32,
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
from broker_stub.handlers.fetch import BY_ID_FROM, names_leader, respond
from broker_stub.replica.delayed_fetch import fetch_records
from broker_stub.replica.fetch_sessions import FetchedTopics, FetchTarget
from broker_stub.replica.leader_epoch_check import NO_EPOCH
from broker_stub.replica.read_partitions import (
    READ_COMMITTED,
    FetchParams,
    FetchPartitionData,
)
from broker_stub.request import Parked, Reply, RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.frame import response_frame
from pyclient.protocol.primitives import ZERO_UUID, Part
from pyclient.varint import decode_uvarint, encode_uvarint

if TYPE_CHECKING:
    from broker_stub.node import Node

_START_OFFSET_FROM: Final = 5
_SESSIONS_FROM: Final = 7
_LEADER_EPOCH_FROM: Final = 9
_RACK_FROM: Final = 11
_FLEXIBLE_FROM: Final = 12
_NO_REPLICA_ID_FROM: Final = 15

_FULL_EPOCH: Final = -1  # of a client without sessions

_INT64: Final = struct.Struct(">q")
_LIMITS: Final = struct.Struct(">iiib")  # max wait, min bytes, max bytes, isolation level
_SESSION: Final = struct.Struct(">ii")
# partition, leader epoch, fetch offset, last fetched epoch, log start offset, max bytes
_FLEXIBLE_PARTITION: Final = struct.Struct(">iiqiqi")

_HEAD: Final = struct.Struct(">iii")  # length, correlation id, throttle time
_FLEXIBLE_HEAD: Final = struct.Struct(">iibihi")  # ... with tags, error code, session id
# index, error code, high watermark, last stable offset
_READ_WITHOUT_START: Final = struct.Struct(">ihqq")
_READ: Final = struct.Struct(">ihqqq")
_ABORTED: Final = struct.Struct(">qq")
_NO_REPLICA: Final = INT32.pack(-1)  # preferred


def serve(node: Node, frame: memoryview, context: RequestContext) -> Reply | Parked[Reply] | None:
    """Read, or wait for records; None, with nothing done, if the handler has to do it."""
    version = context.api_version
    flexible = version >= _FLEXIBLE_FROM
    try:
        params = _parse_flexible(frame, version) if flexible else _parse(frame, version)
    except UNREADABLE:
        return None
    pack = _pack_flexible if flexible else _pack

    def encode(session_id: int, topics: FetchedTopics) -> Reply:
        if names_leader(version, topics):
            response = respond(node, context, session_id, topics)
            return Reply(response_frame(response, version, context.correlation_id))
        return pack(version, context.correlation_id, session_id, topics)

    try:
        return fetch_records(node, params, encode)
    except BrokerResponseError:
        return None  # about the session: nothing was done yet, and the handler raises it again


def _parse(frame: memoryview, version: int) -> FetchParams:
    position = body_position(frame, flexible=False) + INT32.size  # the replica id
    max_wait_ms, min_bytes, max_bytes, isolation = _LIMITS.unpack_from(frame, position)
    position += _LIMITS.size
    session_id, session_epoch = 0, _FULL_EPOCH
    if version >= _SESSIONS_FROM:
        session_id, session_epoch = _SESSION.unpack_from(frame, position)
        position += _SESSION.size
    targets: list[FetchTarget] = []
    (topic_count,) = INT32.unpack_from(frame, position)
    position += INT32.size
    for _ in range(topic_count):
        name, count, position = topic_head(frame, position)
        for _ in range(count):
            target, position = _target(frame, position, version, name)
            targets.append(target)
    if version >= _SESSIONS_FROM:
        (forgotten_count,) = INT32.unpack_from(frame, position)
        if forgotten_count:  # the assignment has just changed
            raise Unfamiliar
        if version >= _RACK_FROM:
            string(frame, position + INT32.size)
    if topic_count < 0:
        raise Unfamiliar
    return FetchParams(
        session_id,
        session_epoch,
        False,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation == READ_COMMITTED,
        targets,
        [],
    )


def _target(frame: memoryview, position: int, version: int, name: str) -> tuple[FetchTarget, int]:
    (index,) = INT32.unpack_from(frame, position)
    position += INT32.size
    leader_epoch = NO_EPOCH
    if version >= _LEADER_EPOCH_FROM:
        (leader_epoch,) = INT32.unpack_from(frame, position)
        position += INT32.size
    (fetch_offset,) = _INT64.unpack_from(frame, position)
    position += _INT64.size
    if version >= _START_OFFSET_FROM:
        position += _INT64.size
    (max_bytes,) = INT32.unpack_from(frame, position)
    key = (ZERO_UUID, name, index)
    return FetchTarget(key, fetch_offset, max_bytes, leader_epoch), position + INT32.size


def _parse_flexible(frame: memoryview, version: int) -> FetchParams:
    position = body_position(frame, flexible=True)
    if version < _NO_REPLICA_ID_FROM:
        position += INT32.size
    max_wait_ms, min_bytes, max_bytes, isolation = _LIMITS.unpack_from(frame, position)
    position += _LIMITS.size
    session_id, session_epoch = _SESSION.unpack_from(frame, position)
    topic_count, position = decode_uvarint(frame, position + _SESSION.size)
    by_id = version >= BY_ID_FROM
    targets: list[FetchTarget] = []
    for _ in range(topic_count - 1):
        name, topic_id, count, position = compact_topic_head(frame, position, by_id=by_id)
        for _ in range(count):
            index, leader_epoch, offset, _, _, partition_max = _FLEXIBLE_PARTITION.unpack_from(
                frame, position
            )
            position += _FLEXIBLE_PARTITION.size
            if frame[position]:  # tagged fields: a follower's
                raise Unfamiliar
            position += 1
            key = (topic_id, name, index)
            targets.append(FetchTarget(key, offset, partition_max, leader_epoch))
        if frame[position]:
            raise Unfamiliar
        position += 1
    # Forgotten topics, an empty list unless the assignment has just changed; then the rack.
    if not topic_count or frame[position] != 1:
        raise Unfamiliar
    _, position = compact_string(frame, position + 1)
    if frame[position]:
        raise Unfamiliar
    return FetchParams(
        session_id,
        session_epoch,
        by_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation == READ_COMMITTED,
        targets,
        [],
    )


def _pack(version: int, correlation_id: int, session_id: int, topics: FetchedTopics) -> Reply:
    pieces: list[bytes] = []
    if version >= _SESSIONS_FROM:
        pieces.append(struct.pack(">hi", 0, session_id))
    pieces.append(INT32.pack(len(topics)))
    parts: list[Part] = []
    for (_, name), reads in topics.items():
        pieces.append(pack_topic_head(name, len(reads)))
        for read in reads:
            pieces.append(_state(read, version))
            if read.aborted is None:
                pieces.append(b"\xff\xff\xff\xff")
            else:
                pieces.append(INT32.pack(len(read.aborted)))
                pieces += [_ABORTED.pack(*one) for one in read.aborted]
            if version >= _RACK_FROM:
                pieces.append(_NO_REPLICA)
            pieces.append(INT32.pack(read.nbytes))
            _add(read, pieces, parts)
    parts.append(b"".join(pieces))
    length = 2 * INT32.size + _length(parts)
    return _reply(_HEAD.pack(length, correlation_id, 0), parts)


def _pack_flexible(
    version: int, correlation_id: int, session_id: int, topics: FetchedTopics
) -> Reply:
    by_id = version >= BY_ID_FROM
    pieces = [encode_uvarint(len(topics) + 1)]
    parts: list[Part] = []
    for (topic_id, name), reads in topics.items():
        pieces.append(pack_compact_topic_head(name, topic_id, len(reads), by_id=by_id))
        for read in reads:
            pieces.append(_state(read, version))
            if read.aborted is None:
                pieces.append(b"\x00")
            else:
                pieces.append(encode_uvarint(len(read.aborted) + 1))
                pieces += [_ABORTED.pack(*one) + b"\x00" for one in read.aborted]
            pieces += (_NO_REPLICA, encode_uvarint(read.nbytes + 1))
            _add(read, pieces, parts)
            pieces.append(b"\x00")
        pieces.append(b"\x00")
    pieces.append(b"\x00")
    parts.append(b"".join(pieces))
    length = _FLEXIBLE_HEAD.size - INT32.size + _length(parts)
    return _reply(_FLEXIBLE_HEAD.pack(length, correlation_id, 0, 0, 0, session_id), parts)


def _state(read: FetchPartitionData, version: int) -> bytes:
    fields = (read.index, read.error_code, read.high_watermark, read.last_stable_offset)
    if version >= _START_OFFSET_FROM:
        return _READ.pack(*fields, read.log_start_offset)
    return _READ_WITHOUT_START.pack(*fields)


def _add(read: FetchPartitionData, pieces: list[bytes], parts: list[Part]) -> None:
    """Add the records: to the bytes, or as a part of their own."""
    if isinstance(read.records, bytes):
        pieces.append(read.records)
    elif read.records is not None:
        parts += (b"".join(pieces), read.records)
        pieces.clear()


def _length(parts: list[Part]) -> int:
    # Bytes and file ranges alternate, with bytes at the end.
    return sum(map(len, parts[::2])) + sum(part.nbytes for part in parts[1::2])  # type: ignore


def _reply(head: bytes, parts: list[Part]) -> Reply:
    parts[0] = head + parts[0]  # type: ignore[operator]
    return Reply(parts)
