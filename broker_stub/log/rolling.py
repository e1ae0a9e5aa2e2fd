"""Rolls a log to a new segment: when the active one is full or old enough, and how.

A roll seals the active segment, snapshots the producers' state and creates the next segment at
the end of the log. Serving thread (an append) or background thread (retention removes all
segments), under the lock of the log.
"""

from broker_stub.log.files.partition_dir import PartitionDir
from broker_stub.log.log_config import INT32_MAX, LogConfig
from broker_stub.log.segment import Segment
from broker_stub.log.segment_list import SegmentList
from pyclient.errors import KafkaStorageError


def should_roll(
    segment: Segment,
    incoming_bytes: int,
    max_timestamp: int,
    last_offset: int,
    config: LogConfig,
    now_ms: int,
) -> bool:
    """Whether batches of this size, latest timestamp and last offset need a new segment.

    They do if `segment.bytes` or `segment.ms` would be exceeded, an index is full, or the last
    offset is too far from the base offset.
    """
    size = segment.records.size
    return (
        size > config.segment_bytes - incoming_bytes
        or (size > 0 and segment.age_ms(max_timestamp, now_ms) > config.roll_ms)
        or segment.search.indexes.are_full
        # Index entries store offsets relative to the base offset, in four bytes.
        or last_offset - segment.base_offset > INT32_MAX
    )


def roll(
    segments: SegmentList,
    directory: PartitionDir,
    end_offset: int,
    config: LogConfig,
    now_ms: int,
) -> None:
    """Seal the active segment and start the next one at `end_offset`.

    Raises:
        KafkaStorageError: the disk refused; the active segment stays active.
    """
    directory.has_changed = True
    sealed = segments.active
    sealed.seal()
    try:
        directory.write_snapshot(end_offset)
        directory.add_segment(segments, end_offset, config, now_ms)
    except OSError as error:
        raise KafkaStorageError(f"cannot roll in {directory.path}: {error}") from error
    directory.forget(sealed.log_path)  # its next reader opens it read-only
