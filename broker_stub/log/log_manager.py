"""A node's logs: opens the folders, makes and deletes partitions, keeps house.

The serving thread creates, finds and deletes logs. What blocks (recovery in `open`, `run_due`,
`close`) belongs on another thread; `run_due` does what is due and says when to come back. One lock
guards the table of logs and the lists of work; nothing blocks under it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_stub import diagnostics
from broker_stub.log.checkpoints import (
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CorruptCheckpointError,
    read_offsets,
    write_offsets,
)
from broker_stub.log.log_config import DEFAULT_LOG_CONFIG, LogConfig
from broker_stub.log.log_dir import LogDir
from broker_stub.log.open_files import OpenFiles
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.partition_metadata import read_partition_metadata
from broker_stub.log.recovery import load_log
from broker_stub.log.retention import delete_old_segments
from broker_stub.purgatory import Timers
from pyclient.clock import Clock
from pyclient.entropy import Entropy
from pyclient.errors import KafkaStorageError
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from broker_stub.log.cleaner import LogCleaner
    from broker_stub.log.compaction import Work

_DELETED_FOLDER: Final = "-delete"
_FOLDER_NAME_MAX: Final = 255


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


DEFAULT_SETTINGS: Final = LogManagerSettings()


class LogManager:
    """All logs of a node, in one or several folders."""

    def __init__(
        self,
        log_dirs: Sequence[str | os.PathLike[str]],
        *,
        clock: Clock,
        entropy: Entropy,
        node_id: int,
        cluster_id: str | None = None,
        default_config: LogConfig = DEFAULT_LOG_CONFIG,
        settings: LogManagerSettings = DEFAULT_SETTINGS,
        files: OpenFiles | None = None,
    ) -> None:
        self.cluster_id = cluster_id or ""
        self.was_clean = False
        self.broker_epoch = -1
        # Called, on any thread, when `run_due` is to come before the time that it said.
        self.on_work: Callable[[], None] = lambda: None
        self._paths = [os.fspath(path) for path in log_dirs]
        self._clock = clock
        self._entropy = entropy
        self._node_id = node_id
        self._default_config = default_config
        self._settings = settings
        self._dirs: list[LogDir] = []
        self._files = OpenFiles(settings.open_files_max) if files is None else files
        self._lock = Lock()
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._to_flush: dict[PartitionLog, float] = {}  # by when, in monotonic milliseconds
        self._to_remove: list[tuple[str, float]] = []  # deleted folders, likewise
        self._timers = Timers(clock)  # background thread only
        self._written: dict[str, dict[TopicPartition, int]] = {}  # what checkpoints say
        self._cleaning: Work | None = None  # the compaction that goes on, if one does

    # The table

    @property
    def directory_ids(self) -> dict[str, bytes]:
        """The id of every folder, by its path."""
        return {log_dir.path: log_dir.directory_id for log_dir in self._dirs}

    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """All logs at this moment."""
        with self._lock:
            return dict(self._logs)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition; None when there is none."""
        return self._logs.get(TopicPartition(topic, partition))

    def create(
        self, topic: str, partition: int, *, topic_id: bytes, config: LogConfig | None = None
    ) -> PartitionLog:
        """The log of a partition, made if there is none; its folder comes with the first append.

        One that was found without its topic's id, because a power loss took the file, gets it.

        Raises:
            KafkaStorageError: the disk refused.
        """
        key = TopicPartition(topic, partition)
        with self._lock:
            log = self._logs.get(key)
            if log is None:
                folder = os.path.join(self._emptiest_dir(), f"{topic}-{partition}")
                log = self._logs[key] = self._make_log(folder, key, topic_id, config)
        if log.topic_id == ZERO_UUID:
            log.name_topic(topic_id)
        return log

    def _make_log(
        self, folder: str, key: TopicPartition, topic_id: bytes, config: LogConfig | None
    ) -> PartitionLog:
        return PartitionLog(
            folder,
            key.topic,
            key.partition,
            topic_id=topic_id,
            config=config or self._default_config,
            files=self._files,
            request_flush=self._request_flush,
        )

    def _emptiest_dir(self) -> str:
        if len(self._dirs) == 1:
            return self._dirs[0].path
        counts = {log_dir.path: 0 for log_dir in self._dirs}
        for log in self._logs.values():
            counts[os.path.dirname(log.folder)] += 1
        return min(counts, key=lambda path: counts[path])

    def delete(self, topic: str, partition: int) -> None:
        """Take a log out of use. Its folder is renamed now and removed in the background.

        Raises:
            KafkaStorageError: the folder cannot be renamed.
        """
        with self._lock:
            log = self._logs.pop(TopicPartition(topic, partition), None)
        if log is None:
            return
        log.abandon()
        suffix = f".{self._entropy.uuid().hex()}{_DELETED_FOLDER}"
        parent, name = os.path.split(log.folder)
        doomed = os.path.join(parent, name[: _FOLDER_NAME_MAX - len(suffix)] + suffix)
        try:
            os.rename(log.folder, doomed)
        except FileNotFoundError:
            return  # nothing was ever appended
        except OSError as error:
            raise KafkaStorageError(f"cannot delete {log.folder}: {error}") from error
        due_ms = self._clock.monotonic_ms() + log.config.file_delete_delay_ms
        with self._lock:
            self._to_remove.append((doomed, due_ms))
        self.on_work()

    def _request_flush(self, log: PartitionLog, delay_ms: int) -> None:
        due_ms = self._clock.monotonic_ms() + delay_ms
        with self._lock:
            self._to_flush[log] = min(due_ms, self._to_flush.get(log, due_ms))
        self.on_work()

    # Start and stop

    def open(self) -> None:
        """Lock the folders and open every log in them; after a crash, recover first.

        Raises:
            KafkaStorageError: a folder is in use, of another node, or cannot be read.
            InconsistentClusterIdError: a folder belongs to another cluster.
        """
        try:
            for path in self._paths:
                self._dirs.append(LogDir(path, self._files.sync))
            # Those that know their cluster first: a new folder joins it.
            for log_dir in sorted(self._dirs, key=lambda one: one.is_new):
                log_dir.identify(self._node_id, self.cluster_id or None, self._entropy)
                self.cluster_id = log_dir.cluster_id
            for log_dir in self._dirs:
                self._load_dir(log_dir)
        except Exception:
            self.abandon()
            raise
        self._schedule()

    def _load_dir(self, log_dir: LogDir) -> None:
        epoch = log_dir.take_clean_shutdown()
        clean = epoch is not None
        self.was_clean = clean and (self.was_clean or log_dir is self._dirs[0])
        self.broker_epoch = max(self.broker_epoch, -1 if epoch is None else epoch)
        recovery_points = _offsets(log_dir, RECOVERY_POINTS)
        start_offsets = _offsets(log_dir, LOG_START_OFFSETS)
        high_watermarks = _offsets(log_dir, HIGH_WATERMARKS)
        for name in sorted(os.listdir(log_dir.path)):
            folder = log_dir.file(name)
            if name.endswith(_DELETED_FOLDER):
                self._to_remove.append((folder, 0.0))
                continue
            if not os.path.isdir(folder):
                continue
            key = _partition_of(name)
            if key is None:
                diagnostics.warn("%s is no partition's folder; it is left alone", folder)
                continue
            if key in self._logs:
                raise KafkaStorageError(f"{name} is in {self._logs[key].folder} and in {folder}")
            topic_id = read_partition_metadata(folder) or ZERO_UUID
            log = self._make_log(folder, key, topic_id, None)
            load_log(
                log,
                self._files,
                clean=clean,
                recovery_point=recovery_points.get(key, 0),
                log_start_offset=start_offsets.get(key, 0),
            )
            log.advance_high_watermark(high_watermarks.get(key, 0))
            self._logs[key] = log

    def close(self, broker_epoch: int = -1) -> None:
        """Stop cleanly: all on disk, and marked as such, so that the next start scans nothing.

        Raises:
            KafkaStorageError: a log could not be closed; the next start recovers.
        """
        failures = []
        for log in self.logs().values():
            try:
                log.close()
            except KafkaStorageError as error:
                failures.append(error)
        try:
            if failures:
                raise failures[0]
            self._write_checkpoints()
            for log_dir in self._dirs:
                log_dir.mark_clean_shutdown(broker_epoch)
        except OSError as error:
            raise KafkaStorageError(f"cannot stop cleanly: {error}") from error
        finally:
            self.abandon()

    def give_back(self) -> None:
        """Let go of folders that turn out to be somebody else's, as they were found."""
        for log_dir in self._dirs:
            log_dir.put_back_clean_shutdown()
        self.abandon()

    def abandon(self) -> None:
        """Let go of everything and write nothing, as if the process had been killed."""
        for log in self.logs().values():
            log.abandon()
        self._files.clear()
        for log_dir in self._dirs:
            log_dir.release()

    # Housekeeping

    def run_due(self) -> float:
        """Do the work that is due; in how many milliseconds there will be more. Blocks."""
        with self._lock:
            to_flush, self._to_flush = self._to_flush, {}
            to_remove, self._to_remove = self._to_remove, []
        for log, due_ms in to_flush.items():
            self._at(due_ms, partial(self._flush, log))
        for folder, due_ms in to_remove:
            self._at(due_ms, partial(_remove_folder, folder))
        if to_remove:
            # What they say of a deleted log is not true of the next one of its name.
            self._attempt(self._write_checkpoints)
        self._timers.fire()
        if self._cleaning is not None:
            self._clean_on()
        next_ms = self._timers.next_deadline_ms()
        assert next_ms is not None  # periodic work never ends
        return 0.0 if self._cleaning else max(0.0, next_ms - self._clock.monotonic_ms())

    def _at(self, due_ms: float, work: Callable[[], None]) -> None:
        self._timers.after(max(0.0, due_ms - self._clock.monotonic_ms()), work)

    def _schedule(self) -> None:
        settings = self._settings
        self._every(settings.retention_check_interval_ms, self._delete_old_segments)
        self._every(settings.checkpoint_interval_ms, self._write_checkpoints)
        self._every(settings.producer_id_expiration_check_interval_ms, self._expire_producers)
        if settings.cleaner_enable:
            self._every(settings.cleaner_backoff_ms, self._clean)

    def _every(self, interval_ms: int, work: Callable[[], None]) -> None:
        def run() -> None:
            self._attempt(work)
            self._timers.after(interval_ms, run)

        self._timers.after(interval_ms, run)

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            diagnostics.warn("the log manager could not do its work: %s", error)

    def _flush(self, log: PartitionLog) -> None:
        try:
            log.flush()
        except KafkaStorageError as error:
            if log in self.logs().values():  # else it was deleted meanwhile
                diagnostics.warn("%s", error)

    def _delete_old_segments(self) -> None:
        for log in self.logs().values():
            try:
                paths = delete_old_segments(log, self._clock.now_ms())
            except (OSError, KafkaStorageError) as error:
                diagnostics.warn("retention of %s-%d: %s", log.topic, log.partition, error)
                continue
            self._remove_later(log, paths)

    def _remove_later(self, log: PartitionLog, paths: Sequence[str]) -> None:
        if paths:
            self._timers.after(log.config.file_delete_delay_ms, partial(_unlink, paths))

    def _clean(self) -> None:
        if self._cleaning is None and any(log.config.is_compacted for log in self.logs().values()):
            self._cleaning = self._cleaner.run(self.logs)

    def _clean_on(self) -> None:
        """Compact a bit more: flushes that somebody waits for come in between."""
        assert self._cleaning is not None
        try:
            next(self._cleaning)
        except StopIteration:
            self._cleaning = None

    @cached_property
    def _cleaner(self) -> "LogCleaner":
        from broker_stub.log.cleaner import LogCleaner

        return LogCleaner(
            self._paths,
            clock=self._clock,
            files=self._files,
            map_bytes=self._settings.cleaner_dedupe_buffer_size,
            on_replaced=self._remove_later,
        )

    def _expire_producers(self) -> None:
        now_ms = self._clock.now_ms()
        for log in self.logs().values():
            log.expire_producers(now_ms, self._settings.producer_id_expiration_ms)

    def _write_checkpoints(self) -> None:
        logs = self.logs()
        for log_dir in self._dirs:
            kept = {
                key: log for key, log in logs.items() if os.path.dirname(log.folder) == log_dir.path
            }
            self._write_offsets(
                log_dir, RECOVERY_POINTS, {key: log.recovery_point for key, log in kept.items()}
            )
            self._write_offsets(
                log_dir, HIGH_WATERMARKS, {key: log.high_watermark for key, log in kept.items()}
            )
            self._write_offsets(
                log_dir,
                LOG_START_OFFSETS,
                {
                    key: log.log_start_offset
                    for key, log in kept.items()
                    if log.log_start_offset > _first_offset_on_disk(log)
                },
            )

    def _write_offsets(
        self, log_dir: LogDir, name: str, offsets: dict[TopicPartition, int]
    ) -> None:
        path = log_dir.file(name)
        if self._written.get(path) != offsets:
            write_offsets(path, offsets, self._files.sync)
            self._written[path] = offsets


def _offsets(log_dir: LogDir, name: str) -> dict[TopicPartition, int]:
    try:
        return read_offsets(log_dir.file(name))
    except CorruptCheckpointError as error:
        diagnostics.warn("%s; it counts as empty", error)
        return {}


def _first_offset_on_disk(log: PartitionLog) -> int:
    segments = log.segments
    return segments[0].base_offset if segments else 0


def _partition_of(name: str) -> TopicPartition | None:
    """The partition whose folder has this name."""
    topic, _, index = name.rpartition("-")
    if not topic or not (index.isascii() and index.isdigit()):
        return None
    return TopicPartition(topic, int(index))


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
