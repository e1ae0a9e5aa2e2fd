"""Decides which segments are deleted: by `retention.ms`, `retention.bytes` and the log start.

Deletes whole segments only, oldest first, and only below the high watermark. Their files are
renamed `.deleted` at once and removed after `file.delete.delay.ms`. Background thread.
"""

from collections.abc import Sequence
from typing import Final

from broker_stub.log.log_config import DELETE
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.segment import Segment
from pyclient.errors import KafkaError

# Bounds the renames under the log's lock, for which the serving thread may wait.
_SEGMENTS_AT_ONCE: Final = 50


def delete_old_segments(log: PartitionLog, now_ms: int) -> list[str]:
    """Take expired segments out of the log; returns their renamed files, to be removed later.

    Raises:
        KafkaStorageError: all segments have expired, and a new one could not be created.
    """

    def choose(segments: Sequence[Segment], log: PartitionLog) -> int:
        return min(_deletable_count(segments, log, now_ms), _SEGMENTS_AT_ONCE)

    removed: list[str] = []
    try:
        while paths := log.detach_oldest(choose, now_ms):
            removed += paths
    except (KafkaError, OSError):
        if not removed:
            raise  # else the next check will raise; the caller must get these files
    return removed


def _deletable_count(segments: Sequence[Segment], log: PartitionLog, now_ms: int) -> int:
    """How many of the oldest segments are deletable; called under the lock of the log."""
    config = log.config
    by_policy = DELETE in config.cleanup_policy
    excess = -1
    if by_policy and config.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments) - config.retention_bytes
    count = 0
    for number, (segment, next_base) in enumerate(
        zip(segments, _next_bases(segments, log), strict=True), start=1
    ):
        if next_base > log.high_watermark or next_base == segment.base_offset:
            break  # not fully replicated, or the active segment and empty
        if not segment.size and next_base > log.log_start_offset:
            continue  # emptied by compaction: it is deleted together with the next one
        excess -= segment.size
        expired = by_policy and 0 <= config.retention_ms < now_ms - segment.latest_ms
        if not (expired or excess >= 0 or next_base <= log.log_start_offset):
            break
        count = number
    return count


def _next_bases(segments: Sequence[Segment], log: PartitionLog) -> list[int]:
    return [*(segment.base_offset for segment in segments[1:]), log.log_end_offset]
