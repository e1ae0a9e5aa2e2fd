"""Finds the first record at or after a timestamp.

The segments' latest timestamps, then the time index, then the offset index lead to one batch. Only
that batch is decoded; if it expands too far, its first offset is the answer. Called under the lock
of the log.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from broker_stub.log.batch.header import BatchHeader
from broker_stub.log.batch.validation import LOOKED_AT_BYTES
from broker_stub.log.files.file_slice import read_exactly
from broker_stub.log.segment import Segment
from pyclient.errors import CorruptRecordError
from pyclient.records.batch import RecordBatch
from pyclient.records.compression import ExpandsTooFarError

_RECORDS_AT_ONCE: Final = 1000


class TimestampAndOffset(NamedTuple):
    """A record found by its time."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def find_timestamp(
    segments: Sequence[Segment], timestamp_ms: int, from_offset: int
) -> TimestampAndOffset | None:
    """The first record at or after `from_offset` that is not older than `timestamp_ms`."""
    for segment in segments:
        if segment.search.max_timestamp[0] < timestamp_ms:
            continue
        for position, header in segment.search.walk_since(timestamp_ms, from_offset):
            if header.max_timestamp >= timestamp_ms and header.last_offset >= from_offset:
                found = _first_record(segment, position, header, timestamp_ms, from_offset)
                if found is not None:
                    return found
    return None


def find_max_timestamp(segments: Sequence[Segment]) -> TimestampAndOffset | None:
    """The first record with the largest timestamp."""
    dated = [segment for segment in segments if segment.search.max_timestamp[0] >= 0]
    if not dated:
        return None
    latest = max(dated, key=lambda segment: segment.search.max_timestamp[0])
    return find_timestamp([latest], latest.search.max_timestamp[0], latest.base_offset)


def _first_record(
    segment: Segment, position: int, header: BatchHeader, timestamp_ms: int, from_offset: int
) -> TimestampAndOffset | None:
    batch = RecordBatch(read_exactly(segment.records.file(), position, header.size))
    try:
        decoder = batch.decoder(from_offset=from_offset, max_expanded=LOOKED_AT_BYTES)
    except CorruptRecordError as error:
        if not isinstance(error.__cause__, ExpandsTooFarError):
            raise
        # Decoding would take too much memory. A reader that starts at the batch finds the record.
        offset = max(header.base_offset, from_offset)
        return TimestampAndOffset(header.max_timestamp, offset, header.leader_epoch)
    while decoder.remaining:
        for record in decoder.read(_RECORDS_AT_ONCE):
            if record.timestamp >= timestamp_ms:
                return TimestampAndOffset(record.timestamp, record.offset, header.leader_epoch)
    return None
