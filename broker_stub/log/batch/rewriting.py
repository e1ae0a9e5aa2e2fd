"""A batch with fewer records: what compaction leaves of it.

Base offset, last offset and sequences stay, so that offsets and retries mean what they meant; a
batch of which no record is left may stay as a bare header. Records keep their bytes, unless the
batch gets a delete horizon: that is kept where the base timestamp was, so all times are written
anew, relative to it. No state; any thread.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from broker_stub.log.batch.header import CHECKSUM_FROM, CODEC_MASK, NO_TIMESTAMP
from pyclient import _twin
from pyclient.records.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, RecordBatch
from pyclient.records.compression import Buffer, compress
from pyclient.records.record import ConsumerRecord

_DELETE_HORIZON: Final = 0x40


class RawRecord(NamedTuple):
    """A record, and the bytes that it is in its batch."""

    record: ConsumerRecord
    content: memoryview


def raw_records(batch: RecordBatch) -> list[RawRecord]:
    """The records of a batch.

    Raises:
        CorruptRecordError: they are not what the header announces.
    """
    section = memoryview(batch.records())
    raw = []
    position = 0
    for record in batch.decode():
        length, start = _read_varint(section, position)
        raw.append(RawRecord(record, section[position : start + length]))
        position = start + length
    return raw


def rewrite(
    batch: RecordBatch, kept: Sequence[RawRecord], delete_horizon_ms: int | None = None
) -> bytes:
    """The batch with only these of its records; with a delete horizon, if it gets one now."""
    attributes, base_timestamp = batch.attributes, batch.base_timestamp
    contents: list[Buffer] = [raw.content for raw in kept]
    if delete_horizon_ms is not None:
        later_ms = delete_horizon_ms - base_timestamp
        contents = [_with_earlier_delta(content, later_ms) for content in contents]
        attributes, base_timestamp = attributes | _DELETE_HORIZON, delete_horizon_ms
    max_timestamp = batch.max_timestamp
    if not batch.timestamp_type:  # else it is the time of all records
        max_timestamp = max(raw.record.timestamp for raw in kept)
    if batch.codec:
        contents = [compress(batch.codec, contents)]
    return _with_header(batch, attributes, base_timestamp, max_timestamp, len(kept), contents)


def bare_header(batch: RecordBatch) -> bytes:
    """The batch without any record."""
    attributes = batch.attributes & ~(CODEC_MASK | _DELETE_HORIZON)
    return _with_header(batch, attributes, NO_TIMESTAMP, batch.max_timestamp, 0, [])


def _with_header(
    batch: RecordBatch,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    record_count: int,
    contents: Sequence[Buffer],
) -> bytes:
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
    rest = b"".join((header[CHECKSUM_FROM:], *contents))
    pack(_twin.crc32c(rest))
    return bytes(header[:CHECKSUM_FROM]) + rest


def _with_earlier_delta(content: Buffer, later_ms: int) -> bytes:
    """A record's bytes, its time relative to a base that is so much later."""
    _, start = _read_varint(content, 0)
    delta_ms, rest = _read_varint(content, start + 1)  # behind the attributes
    body = b"".join(
        (content[start : start + 1], _write_varint(delta_ms - later_ms), content[rest:])
    )
    return _write_varint(len(body)) + body


def _read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """A zig-zag integer, and where it ends."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7


def _write_varint(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
