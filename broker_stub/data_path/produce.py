"""Produce, versions 3-13: batches from the frame straight to their logs.

A batch is a view of the frame; its log patches and writes it. A response without errors is packed
here, any other is left to the codec. Serving thread only.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, TypeAlias

from broker_stub.data_path.wire import (
    INT16,
    INT32,
    NULL,
    UNREADABLE,
    Unfamiliar,
    body_position,
    compact_topic_head,
    pack_compact_topic_head,
    pack_topic_head,
    topic_head,
)
from broker_stub.dispatch import encode_reply
from broker_stub.handlers.produce import BY_ID_FROM, ZSTD_FROM, respond
from broker_stub.replica.append_in_transaction import ProduceTransaction
from broker_stub.replica.append_records import AppendedTopics, append_records
from broker_stub.request import Parked, Reply, RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.primitives import ZERO_UUID, Uuid
from pyclient.varint import decode_uvarint, encode_uvarint

if TYPE_CHECKING:
    from broker_stub.node import Node

_FLEXIBLE_FROM: Final = 9
_START_OFFSET_FROM: Final = 5
_RECORD_ERRORS_FROM: Final = 8

_ACKS_AND_TIMEOUT: Final = struct.Struct(">hi")
_INDEX_AND_LENGTH: Final = struct.Struct(">ii")
_LENGTH_AND_CORRELATION: Final = struct.Struct(">ii")
_WITHOUT_START: Final = struct.Struct(">ihqq")  # index, error code, base offset, append time
_PARTITION: Final = struct.Struct(">ihqqq")  # ... and log start offset
_NO_RECORD_ERRORS: Final = struct.pack(">ih", 0, -1)  # an empty list, and a null message
_NO_RECORD_ERRORS_FLEXIBLE: Final = b"\x01\x00\x00"  # ... and no tagged fields
_NO_THROTTLE: Final = bytes(4)

_Topic: TypeAlias = tuple[str, Uuid, list[tuple[int, memoryview]]]


def serve(node: Node, frame: memoryview, context: RequestContext) -> Reply | Parked[Reply] | None:
    """Append the batches; None, with nothing done, if the handler has to do it.

    Raises:
        CloseConnection: it failed, and the client awaits no answer.
    """
    version = context.api_version
    flexible = version >= _FLEXIBLE_FROM
    try:
        acks, topics = _parse_flexible(frame, version) if flexible else _parse(frame)
    except UNREADABLE:
        return None
    pack = _pack_flexible if flexible else _pack

    def encode(appended: AppendedTopics) -> Reply:
        body = pack(appended, version)
        if body is None:
            return encode_reply(respond(appended), context)
        head = _LENGTH_AND_CORRELATION.pack(INT32.size + len(body), context.correlation_id)
        return Reply([head + body])

    try:
        reply = append_records(
            node,
            acks,
            topics,
            encode,
            by_id=version >= BY_ID_FROM,
            allows_zstd=version >= ZSTD_FROM,
            transaction=ProduceTransaction(None, version),
        )
    except BrokerResponseError:
        return None  # nothing was appended, and the handler raises it again
    return Reply([]) if reply is None else reply


def _parse(frame: memoryview) -> tuple[int, list[_Topic]]:
    position = body_position(frame, flexible=False)
    (transactional_id,) = INT16.unpack_from(frame, position)
    if transactional_id != NULL:
        raise Unfamiliar
    acks, _timeout = _ACKS_AND_TIMEOUT.unpack_from(frame, position + INT16.size)
    position += INT16.size + _ACKS_AND_TIMEOUT.size
    (topic_count,) = INT32.unpack_from(frame, position)
    position += INT32.size
    topics: list[_Topic] = []
    for _ in range(topic_count):
        name, count, position = topic_head(frame, position)
        batches = []
        for _ in range(count):
            index, length = _INDEX_AND_LENGTH.unpack_from(frame, position)
            start = position + _INDEX_AND_LENGTH.size
            position = start + length
            if length < 0 or position > len(frame):
                raise Unfamiliar
            batches.append((index, frame[start:position]))
        topics.append((name, ZERO_UUID, batches))
    if topic_count < 0:
        raise Unfamiliar
    return acks, topics


def _parse_flexible(frame: memoryview, version: int) -> tuple[int, list[_Topic]]:
    position = body_position(frame, flexible=True)
    if frame[position]:  # a transactional id
        raise Unfamiliar
    acks, _timeout = _ACKS_AND_TIMEOUT.unpack_from(frame, position + 1)
    topic_count, position = decode_uvarint(frame, position + 1 + _ACKS_AND_TIMEOUT.size)
    by_id = version >= BY_ID_FROM
    topics: list[_Topic] = []
    for _ in range(topic_count - 1):
        name, topic_id, count, position = compact_topic_head(frame, position, by_id=by_id)
        batches = []
        for _ in range(count):
            (index,) = INT32.unpack_from(frame, position)
            length, start = decode_uvarint(frame, position + INT32.size)
            position = start + length - 1
            if not length or frame[position]:  # null records, or tagged fields
                raise Unfamiliar
            batches.append((index, frame[start:position]))
            position += 1
        if frame[position]:
            raise Unfamiliar
        position += 1
        topics.append((name, topic_id, batches))
    if not topic_count or frame[position]:
        raise Unfamiliar
    return acks, topics


def _pack(topics: AppendedTopics, version: int) -> bytes | None:
    """The body of a response without errors; None if there is one."""
    pieces = [INT32.pack(len(topics))]
    behind = _NO_RECORD_ERRORS if version >= _RECORD_ERRORS_FROM else b""
    for name, _, results in topics:
        pieces.append(pack_topic_head(name, len(results)))
        for index, result in results:
            if isinstance(result, BrokerResponseError):
                return None
            first_offset, _, append_time_ms, start_offset, _, _ = result
            if version >= _START_OFFSET_FROM:
                fields = (index, 0, first_offset, append_time_ms, start_offset)
                pieces.append(_PARTITION.pack(*fields) + behind)
            else:
                pieces.append(_WITHOUT_START.pack(index, 0, first_offset, append_time_ms))
    pieces.append(_NO_THROTTLE)
    return b"".join(pieces)


def _pack_flexible(topics: AppendedTopics, version: int) -> bytes | None:
    by_id = version >= BY_ID_FROM
    # The first byte: the header has no tagged fields.
    pieces = [b"\x00", encode_uvarint(len(topics) + 1)]
    for name, topic_id, results in topics:
        pieces.append(pack_compact_topic_head(name, topic_id, len(results), by_id=by_id))
        for index, result in results:
            if isinstance(result, BrokerResponseError):
                return None
            first_offset, _, append_time_ms, start_offset, _, _ = result
            pieces.append(_PARTITION.pack(index, 0, first_offset, append_time_ms, start_offset))
            pieces.append(_NO_RECORD_ERRORS_FLEXIBLE)
        pieces.append(b"\x00")
    pieces.append(_NO_THROTTLE + b"\x00")
    return b"".join(pieces)
