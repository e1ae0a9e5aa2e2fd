"""Decides which log is compacted next: the one with the highest dirty ratio.

A log is due when its dirty ratio exceeds `min.cleanable.dirty.ratio`, or when a dirty record is
older than `max.compaction.lag.ms`. Never compacted: the active segment, records at or after the
last stable offset, and records younger than `min.compaction.lag.ms`. `offset_checkpoints` stores
up to where each log was compacted. Background thread only.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from broker_stub import diagnostics
from broker_stub.log.cleaning.compaction import Compaction, DirtyLog, Work
from broker_stub.log.cleaning.offset_map import OffsetMap
from broker_stub.log.cleaning.segment_swap import SwapFailedError
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.log_config import INT64_MAX
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.segment import Segment
from pyclient.clock import Clock
from pyclient.errors import CorruptRecordError, KafkaStorageError
from pyclient.types import TopicPartition

Logs = Mapping[TopicPartition, PartitionLog]


class _Candidate(NamedTuple):
    key: TopicPartition
    dirty: DirtyLog
    dirty_ratio: float


class LogCleaner:
    """Compacts the logs of a node, one after another."""

    def __init__(
        self,
        *,
        clock: Clock,
        files: OpenFiles,
        map_bytes: int,
        on_replaced: Callable[[PartitionLog, list[str]], None],
    ) -> None:
        self._clock = clock
        self._files = files
        self._map_bytes = map_bytes
        self._on_replaced = on_replaced
        self._uncleanable: set[PartitionLog] = set()

    def run(self, logs: Callable[[], Logs]) -> Work:
        """Compact all logs that are due, the dirtiest first, one step per yield."""
        tried: set[TopicPartition] = set()
        while True:
            due = [one for one in self._candidates(logs()) if one.key not in tried]
            if not due:
                return
            chosen = max(due, key=lambda candidate: candidate.dirty_ratio)
            compaction = Compaction(
                chosen.dirty,
                self._files,
                OffsetMap(self._map_bytes),
                self._clock.now_ms(),
                self._on_replaced,
            )
            tried.add(chosen.key)
            yield from self._attempt(compaction, chosen.dirty.log, logs)
            if compaction.end_offset > chosen.dirty.first_dirty_offset:
                tried.discard(chosen.key)  # there may be more than the map could hold
                chosen.dirty.log.cleaned_to = compaction.end_offset

    def _attempt(self, compaction: Compaction, log: PartitionLog, logs: Callable[[], Logs]) -> Work:
        try:
            yield from compaction.run()
        except (CorruptRecordError, SwapFailedError) as error:
            # Damage would fail again; a failed swap leaves files that only a restart can sort out.
            self._uncleanable.add(log)
            diagnostics.warn(
                "%s will not be compacted until the broker is restarted: %s", log.folder, error
            )
        except (KafkaStorageError, OSError) as error:
            if log in logs().values():  # else it was deleted meanwhile
                diagnostics.warn("compaction of %s failed, will retry: %s", log.folder, error)

    def _candidates(self, logs: Logs) -> list[_Candidate]:
        now_ms = self._clock.now_ms()
        found = []
        for key, log in logs.items():
            if not log.config.is_compacted or log in self._uncleanable:
                continue
            try:
                candidate = self._candidate(key, log, now_ms)
            except (KafkaStorageError, CorruptRecordError, OSError) as error:
                diagnostics.warn("cannot compact %s, will retry: %s", log.folder, error)
                continue
            if candidate is not None:
                found.append(candidate)
        return found

    def _candidate(self, key: TopicPartition, log: PartitionLog, now_ms: int) -> _Candidate | None:
        """The log as a candidate, or None if it is not due."""
        segments = log.segments
        if len(segments) < 2:
            return None
        first_dirty = log.cleaned_to
        if not log.log_start_offset <= first_dirty <= log.log_end_offset:
            first_dirty = log.log_start_offset
        next_bases = [segment.base_offset for segment in segments[1:]]
        clean = [
            s
            for s, next_base in zip(segments, next_bases, strict=False)
            if next_base <= first_dirty
        ]
        sealed = segments[len(clean) : -1]
        end = min(
            log.last_stable_offset, segments[-1].base_offset, _too_young_from(log, sealed, now_ms)
        )
        dirty = [segment for segment in sealed if segment.base_offset < end]
        dirty_bytes = sum(segment.size for segment in dirty)
        if end <= first_dirty or not dirty_bytes:
            return None
        ratio = dirty_bytes / (dirty_bytes + sum(segment.size for segment in clean))
        if ratio <= log.config.min_cleanable_dirty_ratio and not _is_overdue(log, dirty, now_ms):
            return None
        return _Candidate(key, DirtyLog(log, first_dirty, end), ratio)


def _too_young_from(log: PartitionLog, segments: Sequence[Segment], now_ms: int) -> int:
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms:
        for segment in segments:
            if segment.latest_ms > now_ms - lag_ms:
                return segment.base_offset
    return INT64_MAX


def _is_overdue(log: PartitionLog, segments: Sequence[Segment], now_ms: int) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    return lag_ms != INT64_MAX and any(
        0 < segment.records.first_timestamp < now_ms - lag_ms for segment in segments
    )
