"""All logs of a node: opens the data directories, creates and deletes logs, collects their work.

The serving thread creates, finds and deletes logs. Methods that block (`open`, `run_due`, `close`)
belong on another thread. One lock guards the table of logs and the lists of requested work;
nothing blocks under it. Logs request work under their own lock, so none is used under this one.
"""

import os
import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Final

from broker_stub import diagnostics
from broker_stub.log.files.data_dir import DataDir, partition_of
from broker_stub.log.files.offset_checkpoints import read_known_offsets
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.files.partition_metadata import read_partition_metadata
from broker_stub.log.housekeeping import DEFAULT_SETTINGS, Housekeeping, LogManagerSettings
from broker_stub.log.log_config import DEFAULT_LOG_CONFIG, LogConfig
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.recovery.log_recovery import load_log
from broker_stub.log.segment import Segment
from pyclient.clock import Clock
from pyclient.entropy import Entropy
from pyclient.errors import KafkaStorageError
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.types import TopicPartition

_DELETED_FOLDER: Final = "-delete"
_DELETED_NAME: Final = r".+\.[0-9a-f]{32}" + _DELETED_FOLDER
_STRAY_FOLDER: Final = "-stray"
_FOLDER_NAME_MAX: Final = 255
_SYNC_AT_ONCE_MIN: Final = 100
"""From this many logs on, syncing the whole file system is faster than all their fsyncs."""

__all__ = ["LogManager", "LogManagerSettings"]


class LogManager:
    """All logs of a node, in one or several data directories."""

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
        never_cut: Container[str] = (),
    ) -> None:
        """Use these data directories; `open` reads them.

        Recovery truncates a log at a damaged batch that was not synced. For the topics in
        `never_cut` it raises instead.
        """
        self.cluster_id = cluster_id or ""
        self.was_clean = False
        self.broker_epoch = -1
        # Called, on any thread, when `run_due` must run earlier than it said.
        self.on_work: Callable[[], None] = lambda: None
        # Absolute, because the process may change its working directory.
        self._paths = [os.path.abspath(path) for path in log_dirs]
        self._clock = clock
        self._entropy = entropy
        self._node_id = node_id
        self._default_config = default_config
        self._never_cut = never_cut
        self._dirs: list[DataDir] = []
        self._files = OpenFiles(settings.open_files_max) if files is None else files
        self._lock = Lock()
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._to_flush: dict[PartitionLog, float] = {}  # due times in monotonic milliseconds
        self._to_remove: list[tuple[str, float]] = []  # deleted directories and due times
        self._requested: list[Callable[[], None]] = []  # started by the next `run_due`
        self._housekeeping = Housekeeping(
            self._paths, clock=clock, files=self._files, settings=settings, logs=self.logs
        )

    # --- creating and deleting ---------------------------------------------------------------

    @property
    def directory_ids(self) -> dict[str, bytes]:
        """The id of every data directory, by its path."""
        return {log_dir.path: log_dir.directory_id for log_dir in self._dirs}

    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """A copy of the table of logs."""
        with self._lock:
            return dict(self._logs)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, or None."""
        return self._logs.get(TopicPartition(topic, partition))

    def create(
        self,
        topic: str,
        partition: int,
        *,
        topic_id: bytes,
        directory_id: bytes = ZERO_UUID,
        config: LogConfig | None = None,
    ) -> PartitionLog:
        """The log of a partition, created if missing; the first append creates its directory.

        A new log is in the data directory with `directory_id`, or in the first one if that is
        unknown. A log that lost its topic id in a power failure gets it here.

        Raises:
            KafkaStorageError: the disk refused.
        """
        key = TopicPartition(topic, partition)
        with self._lock:
            log = self._logs.get(key)
            if log is None:
                folder = os.path.join(self._path_of(directory_id), f"{topic}-{partition}")
                log = self._logs[key] = self._make_log(folder, key, topic_id, config)
        if log.topic_id == ZERO_UUID:
            log.set_topic_id(topic_id)
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
            request_reindexing=self._request_reindexing,
            request_recall=self._request_recall,
        )

    def _path_of(self, directory_id: bytes) -> str:
        paths = (one.path for one in self._dirs if one.directory_id == directory_id)
        return next(paths, self._dirs[0].path)

    def delete(self, topic: str, partition: int) -> None:
        """Delete a log. Its directory is renamed now and removed in the background.

        Raises:
            KafkaStorageError: the directory cannot be renamed.
        """
        log = self._take_out(topic, partition)
        doomed = None if log is None else self._rename(log.folder, _DELETED_FOLDER)
        if log is None or doomed is None:
            return
        due_ms = self._clock.monotonic_ms() + log.config.file_delete_delay_ms
        with self._lock:
            self._to_remove.append((doomed, due_ms))
        self.on_work()

    def set_aside(self, topic: str, partition: int) -> str | None:
        """Take a log out of use but keep its directory, renamed `-stray`.

        Raises:
            KafkaStorageError: the directory cannot be renamed.
        """
        log = self._take_out(topic, partition)
        return None if log is None else self._rename(log.folder, _STRAY_FOLDER)

    def _take_out(self, topic: str, partition: int) -> PartitionLog | None:
        with self._lock:
            log = self._logs.pop(TopicPartition(topic, partition), None)
        if log is not None:
            log.abandon()
        return log

    def _rename(self, folder: str, ending: str) -> str | None:
        """Rename a log's directory to a unique name with this ending; None if it does not exist."""
        suffix = f".{self._entropy.uuid().hex()}{ending}"
        parent, name = os.path.split(folder)
        target = os.path.join(parent, name[: _FOLDER_NAME_MAX - len(suffix)] + suffix)
        try:
            os.rename(folder, target)
        except FileNotFoundError:
            return None  # nothing was ever appended
        except OSError as error:
            raise KafkaStorageError(f"cannot rename {folder}: {error}") from error
        return target

    def _request_flush(self, log: PartitionLog, delay_ms: int) -> None:
        due_ms = self._clock.monotonic_ms() + delay_ms
        with self._lock:
            self._to_flush[log] = min(due_ms, self._to_flush.get(log, due_ms))
        self.on_work()

    def _request_reindexing(self, log: PartitionLog, segment: Segment) -> None:
        self._request(partial(self._housekeeping.reindex, log, segment))

    def _request_recall(self, log: PartitionLog) -> None:
        self._request(partial(self._housekeeping.recall, log))

    def _request(self, take_on: Callable[[], None]) -> None:
        with self._lock:
            self._requested.append(take_on)
        self.on_work()

    # --- start and stop ----------------------------------------------------------------------

    def open(self) -> None:
        """Lock the data directories and open every log in them, with recovery after a crash.

        A new directory is owned only once `claim` is called, before anything is stored there.

        Raises:
            KafkaStorageError: a directory is in use, belongs to another node, or cannot be read.
            InconsistentClusterIdError: a directory belongs to another cluster.
        """
        try:
            for path in self._paths:
                self._dirs.append(DataDir(path, self._files.sync))
            # Existing ones first: a new one joins their cluster.
            for log_dir in sorted(self._dirs, key=lambda one: one.is_new):
                log_dir.identify(self._node_id, self.cluster_id or None, self._entropy)
                self.cluster_id = log_dir.cluster_id
            if len(set(self.directory_ids.values())) < len(self._dirs):
                raise KafkaStorageError(f"two of {', '.join(self._paths)} have one directory.id")
            for log_dir in self._dirs:
                self._load_dir(log_dir)
        except OSError as error:
            self.give_back()
            raise KafkaStorageError(f"cannot open {', '.join(self._paths)}: {error}") from error
        except Exception:
            self.give_back()
            raise
        self._housekeeping.start()

    def claim(self) -> None:
        """Write the owner into new data directories, once it is certain that they are used.

        Raises:
            KafkaStorageError: the disk refused.
        """
        try:
            for log_dir in self._dirs:
                log_dir.claim()
        except OSError as error:
            raise KafkaStorageError(f"cannot use {', '.join(self._paths)}: {error}") from error

    def _load_dir(self, log_dir: DataDir) -> None:
        epoch = log_dir.take_clean_shutdown()
        clean = epoch is not None
        self.was_clean = clean and (self.was_clean or log_dir is self._dirs[0])
        self.broker_epoch = max(self.broker_epoch, -1 if epoch is None else epoch)
        known = read_known_offsets(log_dir.path)
        for name in sorted(os.listdir(log_dir.path)):
            folder = log_dir.file(name)
            if re.fullmatch(_DELETED_NAME, name):
                self._to_remove.append((folder, 0.0))
                continue
            if name.endswith(_STRAY_FOLDER) or not os.path.isdir(folder):
                continue
            key = partition_of(name)
            if key is None:
                diagnostics.warn("ignoring %s: its name is not a partition's", folder)
                continue
            if key in self._logs:
                raise KafkaStorageError(f"{name} is in {self._logs[key].folder} and in {folder}")
            topic_id = read_partition_metadata(folder) or ZERO_UUID
            log = self._make_log(folder, key, topic_id, None)
            load_log(
                log,
                self._files,
                clean=clean,
                recovery_point=known.recovery_points.get(key, 0),
                log_start_offset=known.start_offsets.get(key, 0),
                never_cut=key.topic in self._never_cut,
            )
            log.advance_high_watermark(known.high_watermarks.get(key, 0))
            log.cleaned_to = known.cleaned_to.get(key, 0)
            self._logs[key] = log
        for key, offset in known.recovery_points.items():
            if offset and key.topic in self._never_cut and key not in self._logs:
                raise KafkaStorageError(
                    f"{log_dir.file(f'{key.topic}-{key.partition}')} is missing, and the broker"
                    " cannot start without it: restore it from a copy"
                )

    def close(self, broker_epoch: int = -1) -> None:
        """Shut down cleanly: sync everything and mark it, so that the next start scans nothing.

        Raises:
            KafkaStorageError: a log could not be closed; the next start recovers.
        """
        failures = []
        changed = []
        for log in self.logs().values():
            try:
                if log.seal():
                    changed.append(log)
            except KafkaStorageError as error:
                failures.append(error)
        sync = None
        if len(changed) >= _SYNC_AT_ONCE_MIN and self._files.sync_all(
            [log_dir.descriptor for log_dir in self._dirs]
        ):
            sync = _check_exists
        for log in changed:
            try:
                log.close(sync)
            except KafkaStorageError as error:
                failures.append(error)
        try:
            if failures:
                raise failures[0]
            self._housekeeping.write_checkpoints()
            for log_dir in self._dirs:
                log_dir.mark_clean_shutdown(broker_epoch)
        except OSError as error:
            raise KafkaStorageError(f"cannot shut down cleanly: {error}") from error
        finally:
            self.abandon()

    def give_back(self) -> None:
        """Release data directories that cannot be used, and leave them as they were found."""
        for log_dir in self._dirs:
            try:
                log_dir.put_back_clean_shutdown()
            except OSError as error:
                diagnostics.warn(
                    "cannot mark %s as shut down cleanly; the next start runs recovery: %s",
                    log_dir.path,
                    error,
                )
        self.abandon()

    def abandon(self) -> None:
        """Release everything without writing anything, as if the process had been killed."""
        for log in self.logs().values():
            log.abandon()
        self._files.clear()
        for log_dir in self._dirs:
            log_dir.release()

    # --- housekeeping ------------------------------------------------------------------------

    def run_due(self) -> float:
        """Run the work that is due; returns the milliseconds until the next. Blocks."""
        with self._lock:
            to_flush, self._to_flush = self._to_flush, {}
            to_remove, self._to_remove = self._to_remove, []
            requested, self._requested = self._requested, []
        for take_on in requested:
            take_on()
        return self._housekeeping.run_due(to_flush, to_remove)


def _check_exists(path: str) -> None:
    """In place of an fsync: the file is synced already, if it is still there."""
    os.stat(path)
