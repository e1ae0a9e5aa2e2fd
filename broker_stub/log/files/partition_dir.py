"""A partition's directory: creates it, its segments, snapshots and checkpoints, and syncs them.

The first append creates the directory. Called under the lock of the log, except for `sync`, which
runs on the background thread.
"""

import os
from collections.abc import Sequence

from broker_stub import diagnostics
from broker_stub.log.files.checkpoint_file import Sync
from broker_stub.log.files.file_names import SNAPSHOT_SUFFIX, file_name
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.files.partition_metadata import metadata_path, write_partition_metadata
from broker_stub.log.leader_epochs import LeaderEpochs
from broker_stub.log.log_config import LogConfig
from broker_stub.log.producers.producer_state import ProducerState
from broker_stub.log.producers.snapshot import write_snapshot
from broker_stub.log.segment import Segment
from broker_stub.log.segment_list import SegmentList
from pyclient.errors import KafkaStorageError


class PartitionDir:
    """The files of a partition other than its records.

    Attributes:
        has_changed: whether files were created or rewritten since the log was opened.
    """

    __slots__ = ("_files", "_leader_epochs", "_producers", "_topic_id", "has_changed", "path")

    def __init__(
        self,
        path: str,
        topic_id: bytes,
        files: OpenFiles,
        leader_epochs: LeaderEpochs,
        producers: ProducerState,
    ) -> None:
        self.path = path
        self._topic_id = topic_id
        self._files = files
        self._leader_epochs = leader_epochs
        self._producers = producers
        self.has_changed = False

    def create(
        self, segments: SegmentList, base_offset: int, config: LogConfig, now_ms: int
    ) -> None:
        """Create the directory and the log's first segment.

        Raises:
            KafkaStorageError: the disk refused.
        """
        self.has_changed = True
        try:
            os.makedirs(self.path, exist_ok=True)
            write_partition_metadata(self.path, self._topic_id)
            self._leader_epochs.write()
            self.add_segment(segments, base_offset, config, now_ms)
        except OSError as error:
            raise KafkaStorageError(f"cannot create {self.path}: {error}") from error

    def add_segment(
        self, segments: SegmentList, base_offset: int, config: LogConfig, now_ms: int
    ) -> None:
        """Create a segment and make it the active one.

        Raises:
            OSError: the disk refused.
        """
        segments.add(Segment.create(self.path, base_offset, self._files, config, now_ms))

    def forget(self, path: str) -> None:
        """Drop a file from the cache of open files."""
        self._files.forget(path)

    def set_topic_id(self, topic_id: bytes) -> None:
        """Rewrite `partition.metadata`, which was lost in a power failure.

        Raises:
            KafkaStorageError: the disk refused.
        """
        self._topic_id = topic_id
        self.has_changed = True
        try:
            write_partition_metadata(self.path, topic_id)
        except OSError as error:
            raise KafkaStorageError(f"cannot write to {self.path}: {error}") from error

    def write_snapshot(self, end_offset: int) -> None:
        """Write a snapshot of the producers' state at the end of the log."""
        path = os.path.join(self.path, file_name(end_offset, SNAPSHOT_SUFFIX))
        write_snapshot(path, self._producers)

    def write_leader_epoch(self, start_offset: int) -> None:
        """Write the epoch that was just added at `start_offset`; on failure, drop it again.

        Raises:
            KafkaStorageError: the disk refused.
        """
        self.has_changed = True
        try:
            self._leader_epochs.write()
        except OSError as error:
            self._leader_epochs.truncate_from_end(start_offset)
            raise KafkaStorageError(f"cannot write {self._leader_epochs.path}: {error}") from error

    def rewrite_leader_epochs(self) -> None:
        """Write the epochs left after a deletion. On failure, the next start drops the others."""
        self.has_changed = True
        try:
            self._leader_epochs.write()
        except OSError as error:
            diagnostics.warn("%s still lists epochs of deleted records: %s", self.path, error)

    def sync(
        self,
        segments: Sequence[Segment],
        *,
        is_new: bool,
        is_closing: bool,
        sync: Sync | None = None,
    ) -> None:
        """Fsync segments, the last of which is active, and the files that belong to them.

        The indexes of the active segment change all the time: they are synced only when the log
        closes. `sync` replaces the fsync of a file.

        Raises:
            SyncFailedError: an fsync failed.
            OSError: a file could not be opened; a later attempt may succeed.
        """
        sync = sync or self._files.sync
        for segment in segments:
            segment.sync(with_indexes=is_closing or segment is not segments[-1], sync=sync)
        sync(self._leader_epochs.path)
        if is_new:
            sync(metadata_path(self.path))
        sync(self.path)
        if is_new:
            sync(os.path.dirname(self.path))
