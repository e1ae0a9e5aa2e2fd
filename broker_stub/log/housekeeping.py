"""What a node's logs need from time to time: flushes, retention, compaction, checkpoints, removals,
new indexes where those in use are damaged, and what producers wrote before the start.

All of it may block. Background thread only, but for `write_checkpoints` at a clean stop, when that
thread has ended.
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
    """None: a quarter of the descriptors that the process may have."""


# Kafka allows an interval of 0; here one thread does everything, and the others want their turn.
_PAUSE_MS_MIN: Final = 1
_REINDEXING_RETRY_MS: Final = 15_000

DEFAULT_SETTINGS: Final = LogManagerSettings()


class Housekeeping:
    """Does what is due, and knows when there will be more."""

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
        self._cleaning: Work | None = None  # the compaction that goes on, if one does
        self._works: deque[Work] = deque()  # done in turns, a bit at a time

    def start(self) -> None:
        """Begin the periodic work."""
        settings = self._settings
        self._every(settings.retention_check_interval_ms, self._delete_old_segments)
        self._every(settings.checkpoint_interval_ms, self.write_checkpoints)
        self._every(settings.producer_id_expiration_check_interval_ms, self._expire_producers)
        if settings.cleaner_enable:
            self._every(settings.cleaner_backoff_ms, self._clean)

    def run_due(
        self, to_flush: Mapping[PartitionLog, float], to_remove: Sequence[tuple[str, float]]
    ) -> float:
        """Take on new work, each with its time; do all that is due; when to come back."""
        for log, due_ms in to_flush.items():
            self._at(due_ms, partial(self._flush, log))
        for folder, due_ms in to_remove:
            self._at(due_ms, partial(_remove_folder, folder))
        if to_remove:
            # What they say of a deleted log is not true of the next one of its name.
            self._attempt(self.write_checkpoints)
        self._timers.fire()
        self._work_on()
        next_ms = self._timers.next_deadline_ms()
        assert next_ms is not None  # periodic work never ends
        return 0.0 if self._works else max(0.0, next_ms - self._clock.monotonic_ms())

    def reindex(self, log: PartitionLog, segment: Segment) -> None:
        """Take on the making of a segment's indexes, which are damaged."""
        diagnostics.warn(
            "rebuilding indexes of %s: they do not match the segment", segment.log_path
        )
        self._works.append(self._reindex(log, segment))

    def recall(self, log: PartitionLog) -> None:
        """Take on the reading of a log's tail, for its producers' older batches."""
        self._works.append(self._recall(log))

    def write_checkpoints(self) -> None:
        """Write down what is known of the logs.

        Raises:
            OSError: the disk refused.
        """
        self._checkpoints.write(self._folders, self._logs())

    def _at(self, due_ms: float, work: Callable[[], None]) -> None:
        self._timers.after(max(0.0, due_ms - self._clock.monotonic_ms()), work)

    def _every(self, interval_ms: int, work: Callable[[], None]) -> None:
        pause_ms = max(interval_ms, _PAUSE_MS_MIN)

        def run() -> None:
            self._timers.after(pause_ms, run)  # first: whatever happens, there is a next time
            self._attempt(work)

        self._timers.after(pause_ms, run)

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            diagnostics.warn("the log manager could not do its work: %s", error)

    def _flush(self, log: PartitionLog) -> None:
        try:
            log.flush()
        except KafkaStorageError as error:
            if self._is_ours(log):
                diagnostics.warn("%s", error)

    def _delete_old_segments(self) -> None:
        for log in self._logs().values():
            try:
                paths = delete_old_segments(log, self._clock.now_ms())
            except (OSError, KafkaStorageError, CorruptRecordError) as error:
                diagnostics.warn("retention of %s-%d: %s", log.topic, log.partition, error)
                continue
            self._remove_later(log, paths)

    def _remove_later(self, log: PartitionLog, paths: Sequence[str]) -> None:
        if paths:
            self._timers.after(log.config.file_delete_delay_ms, partial(_unlink, paths))

    def _expire_producers(self) -> None:
        now_ms = self._clock.now_ms()
        for log in self._logs().values():
            log.expire_producers(now_ms, self._settings.producer_id_expiration_ms)

    # Long work

    def _work_on(self) -> None:
        """Do a bit more of what takes long: flushes that somebody waits for come in between."""
        if self._works:
            work = self._works.popleft()
            try:
                next(work)
            except StopIteration:
                return
            self._works.append(work)

    def _clean(self) -> None:
        if self._cleaning in self._works:
            return  # it still goes on
        if any(log.config.is_compacted for log in self._logs().values()):
            self._cleaning = self._cleaner.run(self._logs)
            self._works.append(self._cleaning)

    def _reindex(self, log: PartitionLog, segment: Segment) -> "Work":
        from broker_stub.log.index.reindexing import reindex

        try:
            yield from reindex(log, segment)
        except (KafkaStorageError, OSError) as error:
            if self._is_ours(log):
                diagnostics.warn("%s gets no index for now: %s", segment.log_path, error)
                again = partial(self._works.append, self._reindex(log, segment))
                self._timers.after(_REINDEXING_RETRY_MS, again)

    def _recall(self, log: PartitionLog) -> "Work":
        from broker_stub.log.producers.recall import recall

        try:
            yield from recall(log)
        except (KafkaStorageError, OSError) as error:
            if self._is_ours(log):
                diagnostics.warn("producers' retries in %s are not known yet: %s", log, error)

    def _is_ours(self, log: PartitionLog) -> bool:
        """Whether it was not deleted meanwhile."""
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
    import shutil  # takes longer to import than the rest of a start

    shutil.rmtree(folder, ignore_errors=True)


def _unlink(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue  # its partition was deleted first
        except OSError as error:
            diagnostics.warn("cannot remove %s: %s", path, error)
