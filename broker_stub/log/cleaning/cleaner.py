"""Which log is compacted next: the one with the most that is new, if that is enough.

A log is due when the new part of it is larger than `min.cleanable.dirty.ratio`, or has waited for
`max.compaction.lag.ms`. Never compacted are the active segment, what is not decided yet (an open
transaction), and what is younger than `min.compaction.lag.ms`. Each log remembers up to where it
was compacted; `offset_checkpoints` keeps that. Background thread only.
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
        """Compact all that is due, the dirtiest first, with pauses."""
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
                tried.discard(chosen.key)  # there may be more than fitted the map
                chosen.dirty.log.cleaned_to = compaction.end_offset

    def _attempt(self, compaction: Compaction, log: PartitionLog, logs: Callable[[], Logs]) -> Work:
        try:
            yield from compaction.run()
        except (CorruptRecordError, SwapFailedError) as error:
            # The one would fail again, and after the other the files are between two states.
            self._uncleanable.add(log)
            diagnostics.warn("%s is not compacted until the next start: %s", log.folder, error)
        except (KafkaStorageError, OSError) as error:
            if log in logs().values():  # else it was deleted meanwhile
                diagnostics.warn("compaction of %s: %s", log.folder, error)

    def _candidates(self, logs: Logs) -> list[_Candidate]:
        now_ms = self._clock.now_ms()
        found = []
        for key, log in logs.items():
            if not log.config.is_compacted or log in self._uncleanable:
                continue
            try:
                candidate = self._candidate(key, log, now_ms)
            except (KafkaStorageError, CorruptRecordError, OSError) as error:
                diagnostics.warn("%s is not compacted for now: %s", log.folder, error)
                continue
            if candidate is not None:
                found.append(candidate)
        return found

    def _candidate(self, key: TopicPartition, log: PartitionLog, now_ms: int) -> _Candidate | None:
        """The log, if it is due."""
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
