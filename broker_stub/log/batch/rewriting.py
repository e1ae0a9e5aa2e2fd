"""Rewrites a batch with fewer records, for compaction.

Base offset, last offset and sequences stay, so offsets and duplicate detection keep working; a
batch that lost all its records may stay as an empty one. Records keep their bytes, unless the
batch gets a delete horizon: that replaces the base timestamp, so all timestamp deltas are
rewritten. No state; any thread.
"""

from collections.abc import Sequence
from typing import NamedTuple

from broker_stub.log.batch.header import NO_TIMESTAMP
from pyclient import _twin
from pyclient.records.batch import RecordBatch
from pyclient.records.compression import Buffer, compress
from pyclient.records.header import (
    CODEC_MASK,
    CRC_FROM,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
)
from pyclient.records.record import ConsumerRecord
from pyclient.varint import decode_varint, encode_varint


class RawRecord(NamedTuple):
    """A record, and its bytes in the batch."""

    record: ConsumerRecord
    content: memoryview


def raw_records(batch: RecordBatch) -> list[RawRecord]:
    """The records of a batch.

    Raises:
        CorruptRecordError: they do not match the header.
    """
    section = memoryview(batch.records())
    raw = []
    position = 0
    for record in batch.decode():
        length, start = decode_varint(section, position)
        raw.append(RawRecord(record, section[position : start + length]))
        position = start + length
    return raw


def rewrite(
    batch: RecordBatch, kept: Sequence[RawRecord], delete_horizon_ms: int | None = None
) -> bytes:
    """The batch with only the `kept` records; sets a delete horizon if one is given."""
    attributes, base_timestamp = batch.attributes, batch.base_timestamp
    contents: list[Buffer] = [raw.content for raw in kept]
    if delete_horizon_ms is not None:
        later_ms = delete_horizon_ms - base_timestamp
        contents = [_rebased(content, later_ms) for content in contents]
        attributes, base_timestamp = attributes | DELETE_HORIZON, delete_horizon_ms
    max_timestamp = batch.max_timestamp
    if not batch.timestamp_type:  # else it is the timestamp of all records
        max_timestamp = max(raw.record.timestamp for raw in kept)
    if batch.codec:
        contents = [compress(batch.codec, contents)]
    return with_header(batch, attributes, base_timestamp, max_timestamp, len(kept), contents)


def bare_header(batch: RecordBatch) -> bytes:
    """The batch with its records removed."""
    attributes = batch.attributes & ~(CODEC_MASK | DELETE_HORIZON)
    return with_header(batch, attributes, NO_TIMESTAMP, batch.max_timestamp, 0, [])


def with_header(
    batch: RecordBatch,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    record_count: int,
    contents: Sequence[Buffer],
) -> bytes:
    """A batch of these fields and contents, the rest as in `batch`; its checksum is right."""
    header = bytearray(HEADER_SIZE)
    length = HEADER_SIZE - LOG_OVERHEAD + sum(len(content) for content in contents)

    def pack(checksum: int) -> None:
        HEADER.pack_into(
            header,
            0,
            batch.base_offset,
            length,
            batch.leader_epoch,
            batch.magic,
            checksum,
            attributes,
            batch.last_offset_delta,
            base_timestamp,
            max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            record_count,
        )

    pack(0)
    rest = b"".join((header[CRC_FROM:], *contents))
    pack(_twin.crc32c(rest))
    return bytes(header[:CRC_FROM]) + rest


def _rebased(content: Buffer, later_ms: int) -> bytes:
    """A record's bytes, with its timestamp delta relative to a base that is `later_ms` later."""
    _, start = decode_varint(content, 0)
    delta_ms, rest = decode_varint(content, start + 1, bits=64)  # behind the attributes
    body = b"".join(
        (content[start : start + 1], encode_varint(delta_ms - later_ms), content[rest:])
    )
    return encode_varint(len(body)) + body
