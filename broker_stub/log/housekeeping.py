"""The background work of a node's logs, and its schedule.

Flushes, retention, compaction, checkpoints, removal of deleted files, index rebuilds, and reading
the older batches of producers. All of it may block. Background thread only, except for
`write_checkpoints` at a clean shutdown, after that thread has ended.
"""

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_stub import diagnostics
from broker_stub.log.cleaning.retention import delete_old_segments
from broker_stub.log.files.offset_checkpoints import OffsetCheckpoints
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.segment import Segment
from broker_stub.purgatory import Timers
from pyclient.clock import Clock
from pyclient.errors import CorruptRecordError, KafkaStorageError
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.log.cleaning.cleaner import LogCleaner
    from broker_stub.log.cleaning.compaction import Work


class LogManagerSettings(NamedTuple):
    """The broker's options about all logs, with Kafka's defaults."""

    retention_check_interval_ms: int = 300_000
    checkpoint_interval_ms: int = 60_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    cleaner_enable: bool = True
    cleaner_backoff_ms: int = 15_000
    cleaner_dedupe_buffer_size: int = 128 << 20
    open_files_max: int | None = None
    """None: a quarter of the process's limit of open files."""


# Kafka allows an interval of 0. Here one thread does everything, so nothing may take all its time.
_PAUSE_MS_MIN: Final = 1
_REINDEXING_RETRY_MS: Final = 15_000

DEFAULT_SETTINGS: Final = LogManagerSettings()


class Housekeeping:
    """Runs the work that is due, and knows when the next is."""

    def __init__(
        self,
        folders: Sequence[str],
        *,
        clock: Clock,
        files: OpenFiles,
        settings: LogManagerSettings,
        logs: Callable[[], Mapping[TopicPartition, PartitionLog]],
    ) -> None:
        self._folders = folders
        self._clock = clock
        self._files = files
        self._settings = settings
        self._logs = logs
        self._timers = Timers(clock)
        self._checkpoints = OffsetCheckpoints(files.sync)
        self._cleaning: Work | None = None  # the compaction under way
        self._works: deque[Work] = deque()  # long work: each takes a step in turn

    def start(self) -> None:
        """Schedule the periodic work."""
        settings = self._settings
        self._every(settings.retention_check_interval_ms, self._delete_old_segments)
        self._every(settings.checkpoint_interval_ms, self.write_checkpoints)
        self._every(settings.producer_id_expiration_check_interval_ms, self._expire_producers)
        if settings.cleaner_enable:
            self._every(settings.cleaner_backoff_ms, self._clean)

    def run_due(
        self, to_flush: Mapping[PartitionLog, float], to_remove: Sequence[tuple[str, float]]
    ) -> float:
        """Schedule the new work, run everything due, return the milliseconds until the next.

        `to_flush` and `to_remove` have due times in monotonic milliseconds.
        """
        for log, due_ms in to_flush.items():
            self._at(due_ms, partial(self._flush, log))
        for folder, due_ms in to_remove:
            self._at(due_ms, partial(_remove_folder, folder))
        if to_remove:
            # A new log with the name of a deleted one must not find that one's offsets.
            self._attempt(self.write_checkpoints)
        self._timers.fire()
        self._work_on()
        next_ms = self._timers.next_deadline_ms()
        assert next_ms is not None  # periodic work never ends
        return 0.0 if self._works else max(0.0, next_ms - self._clock.monotonic_ms())

    def reindex(self, log: PartitionLog, segment: Segment) -> None:
        """Start a rebuild of a segment's damaged indexes."""
        diagnostics.warn(
            "rebuilding indexes of %s: they do not match the segment", segment.log_path
        )
        self._works.append(self._reindex(log, segment))

    def recall(self, log: PartitionLog) -> None:
        """Start reading a log's tail for older batches of its producers."""
        self._works.append(self._recall(log))

    def write_checkpoints(self) -> None:
        """Write the offset checkpoints of all logs.

        Raises:
            OSError: the disk refused.
        """
        self._checkpoints.write(self._folders, self._logs())

    def _at(self, due_ms: float, work: Callable[[], None]) -> None:
        self._timers.after(max(0.0, due_ms - self._clock.monotonic_ms()), work)

    def _every(self, interval_ms: int, work: Callable[[], None]) -> None:
        pause_ms = max(interval_ms, _PAUSE_MS_MIN)

        def run() -> None:
            self._timers.after(pause_ms, run)  # first, so that a failure does not end the schedule
            self._attempt(work)

        self._timers.after(pause_ms, run)

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            diagnostics.warn("log housekeeping failed, will retry: %s", error)

    def _flush(self, log: PartitionLog) -> None:
        try:
            log.flush()
        except KafkaStorageError as error:
            if self._is_present(log):
                diagnostics.warn("%s", error)

    def _delete_old_segments(self) -> None:
        for log in self._logs().values():
            try:
                paths = delete_old_segments(log, self._clock.now_ms())
            except (OSError, KafkaStorageError, CorruptRecordError) as error:
                diagnostics.warn("retention of %s-%d failed: %s", log.topic, log.partition, error)
                continue
            self._remove_later(log, paths)

    def _remove_later(self, log: PartitionLog, paths: Sequence[str]) -> None:
        if paths:
            self._timers.after(log.config.file_delete_delay_ms, partial(_unlink, paths))

    def _expire_producers(self) -> None:
        now_ms = self._clock.now_ms()
        for log in self._logs().values():
            log.expire_producers(now_ms, self._settings.producer_id_expiration_ms)

    # --- long work ---------------------------------------------------------------------------

    def _work_on(self) -> None:
        """Run one step of the long work. Flushes, which acks wait for, run between steps."""
        if self._works:
            work = self._works.popleft()
            try:
                next(work)
            except StopIteration:
                return
            self._works.append(work)

    def _clean(self) -> None:
        if self._cleaning in self._works:
            return  # still under way
        if any(log.config.is_compacted for log in self._logs().values()):
            self._cleaning = self._cleaner.run(self._logs)
            self._works.append(self._cleaning)

    def _reindex(self, log: PartitionLog, segment: Segment) -> "Work":
        from broker_stub.log.index.reindexing import reindex

        try:
            yield from reindex(log, segment)
        except (KafkaStorageError, OSError) as error:
            if self._is_present(log):
                diagnostics.warn(
                    "cannot rebuild indexes of %s, will retry: %s", segment.log_path, error
                )
                again = partial(self._works.append, self._reindex(log, segment))
                self._timers.after(_REINDEXING_RETRY_MS, again)

    def _recall(self, log: PartitionLog) -> "Work":
        from broker_stub.log.producers.recall import recall

        try:
            yield from recall(log)
        except (KafkaStorageError, OSError) as error:
            if self._is_present(log):
                diagnostics.warn("cannot read older producer batches of %s: %s", log, error)

    def _is_present(self, log: PartitionLog) -> bool:
        """Whether the log was not deleted meanwhile."""
        return log in self._logs().values()

    @cached_property
    def _cleaner(self) -> "LogCleaner":
        from broker_stub.log.cleaning.cleaner import LogCleaner

        return LogCleaner(
            clock=self._clock,
            files=self._files,
            map_bytes=self._settings.cleaner_dedupe_buffer_size,
            on_replaced=self._remove_later,
        )


def _remove_folder(folder: str) -> None:
    import shutil  # lazily: it takes longer to import than the rest of a start

    shutil.rmtree(folder, ignore_errors=True)


def _unlink(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue  # its partition was deleted first
        except OSError as error:
            diagnostics.warn("cannot remove %s: %s", path, error)
