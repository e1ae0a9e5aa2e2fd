"""A partition's folder: made by the first append, given a segment at each roll, synced.

Called under the lock of its log, but for `sync`, which runs on the background thread.
"""

import os
from collections.abc import Sequence

from broker_stub import diagnostics
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.files.partition_metadata import metadata_path, write_partition_metadata
from broker_stub.log.leader_epochs import LeaderEpochs
from broker_stub.log.log_config import LogConfig
from broker_stub.log.producers.producer_state import ProducerState
from broker_stub.log.producers.snapshot import SNAPSHOT_SUFFIX, write_snapshot
from broker_stub.log.segment import Segment, file_name
from broker_stub.log.segment_list import SegmentList
from pyclient.errors import KafkaStorageError


class LogFolder:
    """What is written to a folder besides records.

    Attributes:
        has_changed: whether files were made or renewed since it was opened.
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

    def make(self, segments: SegmentList, base_offset: int, config: LogConfig, now_ms: int) -> None:
        """Make the folder and its first segment.

        Raises:
            KafkaStorageError: the disk refused.
        """
        self.has_changed = True
        try:
            os.makedirs(self.path, exist_ok=True)
            write_partition_metadata(self.path, self._topic_id)
            self._leader_epochs.write()
            segments.add(Segment.create(self.path, base_offset, self._files, config, now_ms))
        except OSError as error:
            raise KafkaStorageError(f"cannot make {self.path}: {error}") from error

    def name_topic(self, topic_id: bytes) -> None:
        """Write the id of the topic again, which a power loss took.

        Raises:
            KafkaStorageError: the disk refused.
        """
        self._topic_id = topic_id
        self.has_changed = True
        try:
            write_partition_metadata(self.path, topic_id)
        except OSError as error:
            raise KafkaStorageError(f"cannot write to {self.path}: {error}") from error

    def roll(self, segments: SegmentList, end_offset: int, config: LogConfig, now_ms: int) -> None:
        """Close the active segment and start the next one at the end of the log.

        Raises:
            KafkaStorageError: the disk refused; the active segment goes on.
        """
        self.has_changed = True
        sealed = segments.active
        sealed.seal()
        try:
            self.take_snapshot(end_offset)
            segments.add(Segment.create(self.path, end_offset, self._files, config, now_ms))
        except OSError as error:
            raise KafkaStorageError(f"cannot roll in {self.path}: {error}") from error
        self._files.forget(sealed.log_path)  # its next reader needs no writer

    def take_snapshot(self, end_offset: int) -> None:
        """Write what the producers' state is at the end of the log."""
        path = os.path.join(self.path, file_name(end_offset, SNAPSHOT_SUFFIX))
        write_snapshot(path, self._producers)

    def write_leader_epoch(self, start_offset: int) -> None:
        """Write the epoch that was just noted at `start_offset`; else forget it.

        Raises:
            KafkaStorageError: the disk refused.
        """
        self.has_changed = True
        try:
            self._leader_epochs.write()
        except OSError as error:
            self._leader_epochs.truncate_from_end(start_offset)
            raise KafkaStorageError(f"cannot write {self._leader_epochs.path}: {error}") from error

    def renew_leader_epochs(self) -> None:
        """Write the epochs that are left. If the disk refuses: the next start leaves them out."""
        self.has_changed = True
        try:
            self._leader_epochs.write()
        except OSError as error:
            diagnostics.warn("%s has epochs of deleted records: %s", self.path, error)

    def sync(self, segments: Sequence[Segment], *, is_new: bool, is_closing: bool) -> None:
        """Fsync segments, the last of which is active, and what belongs to them.

        The indexes of the active one change all the time: they are synced when the log closes.

        Raises:
            SyncFailedError: the disk did not keep what it had taken.
            OSError: a file could not be opened; another try may do better.
        """
        for segment in segments:
            segment.sync(with_indexes=is_closing or segment is not segments[-1])
        self._files.sync(self._leader_epochs.path)
        if is_new:
            self._files.sync(metadata_path(self.path))  # it names its topic for good
        self._files.sync(self.path)
        if is_new:
            self._files.sync(os.path.dirname(self.path))
