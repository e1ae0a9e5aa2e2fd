"""Opens a partition's log: reads its directory, and repairs what a crash left.

After a clean shutdown nothing is scanned: sizes come from the directory, the log end from a walk
behind the last index entry, the producers from a snapshot. After a crash, every batch from the
segment of the recovery point on is checked. The log is cut at the first torn or damaged batch, and
indexes, producer state and leader epochs are rebuilt from the rest. Synced batches are never cut
off: if one is damaged, reads of it fail, and the batches behind it stay readable. Runs before the
log is served, off the serving thread.
"""

import os
from collections.abc import Sequence

from broker_stub import diagnostics
from broker_stub.log.batch.append_info import BatchPlace
from broker_stub.log.batch.batch_checker import BatchChecker, refuse_old_format
from broker_stub.log.files.checkpoint_file import CorruptCheckpointError
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.leader_epochs import LeaderEpochs
from broker_stub.log.log_config import INT32_MAX, INT64_MAX
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.producers.replay import recover_producers
from broker_stub.log.recovery.folder_scan import FolderFiles, SegmentFiles, list_files
from broker_stub.log.recovery.swap_recovery import finish_swaps
from broker_stub.log.segment import Segment
from pyclient.errors import CorruptRecordError, KafkaStorageError


def load_log(
    log: PartitionLog,
    files: OpenFiles,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    never_cut: bool = False,
) -> None:
    """Load an empty log from its directory, with recovery unless `clean`.

    With `never_cut` only a torn last batch is cut off. The writer of such a log syncs each batch
    before the next, so every batch but the last was synced.

    Raises:
        KafkaStorageError: the directory cannot be read, has an unknown format, or is damaged where
            it must not be cut.
    """
    try:
        finish_swaps(log.folder, files, log.config)
        found = list_files(log.folder)
        for path in found.leftovers:
            os.unlink(path)
        loading = _Loading(log, files, found, recovery_point, clean=clean, never_cut=never_cut)
        loading.run(log_start_offset)
    except OSError as error:
        raise KafkaStorageError(f"cannot open {log.folder}: {error}") from error


class _Loading:
    """The steps of opening one log."""

    def __init__(
        self,
        log: PartitionLog,
        files: OpenFiles,
        found: FolderFiles,
        recovery_point: int,
        *,
        clean: bool,
        never_cut: bool,
    ) -> None:
        self._log = log
        self._files = files
        self._found = found
        self._recovery_point = recovery_point
        self._synced_to = INT64_MAX if clean else recovery_point
        self._clean = clean
        self._never_cut = never_cut
        self._epochs_changed = False
        self._unindexed: set[int] = set()  # base offsets of segments with missing or torn indexes
        self._recovered: list[Segment] = []

    def run(self, log_start_offset: int) -> None:
        log = self._log
        segments = [self._open_segment(sizes) for sizes in self._found.segments]
        if segments:  # old message formats can only be at the start of a log
            refuse_old_format(segments[0].records.file(), 0, segments[0].size)
        epochs_known = self._load_epochs()
        self._recover(segments)
        end_offset = self._end_of(segments)
        self._check_end(end_offset)
        first_offset = segments[0].base_offset if segments else 0
        start_offset = max(log_start_offset, first_offset)
        if end_offset < start_offset:
            offsets = (log.folder, end_offset, start_offset)
            if self._clean and segments:
                diagnostics.warn(
                    "%s ends at %d: ignoring the checkpointed log start offset %d", *offsets
                )
                start_offset = first_offset
            else:
                # The checkpoint was synced but later records were not: continue at its offset.
                diagnostics.warn(
                    "%s ends at %d, before its checkpointed start %d: emptying the log", *offsets
                )
                _remove(segments)
                segments, end_offset = [], start_offset
        if not epochs_known:
            _assign_epochs(log.leader_epochs, segments)
        if (
            log.leader_epochs.truncate_from_end(end_offset)
            | log.leader_epochs.truncate_from_start(start_offset)
            | self._epochs_changed
        ):
            log.leader_epochs.write()
        recovered = [segment for segment in self._recovered if segment in segments]
        recover_producers(log, segments, self._found.snapshots, end_offset, recovered)
        log.restore(
            segments,
            start_offset,
            end_offset,
            min(self._recovery_point, end_offset),
            is_clean=self._clean and not self._recovered and not self._epochs_changed,
        )

    def _open_segment(self, sizes: SegmentFiles) -> Segment:
        segment = Segment(
            self._log.folder,
            sizes.base_offset,
            self._files,
            self._log.config,
            size=sizes.size,
            index_bytes=sizes.index_bytes or 0,
            time_index_bytes=sizes.time_index_bytes or 0,
            transaction_index_bytes=sizes.transaction_index_bytes,
        )
        if not sizes.has_whole_indexes():
            self._unindexed.add(sizes.base_offset)
        return segment

    def _load_epochs(self) -> bool:
        # A power failure may have lost the file. A flush syncs it, so it has to exist.
        self._epochs_changed = not os.path.exists(self._log.leader_epochs.path)
        try:
            self._log.leader_epochs.load()
        except CorruptCheckpointError as error:
            diagnostics.warn("%s; reading the leader epochs from the log instead", error)
            self._epochs_changed = True
            return False
        return True

    def _recover(self, segments: list[Segment]) -> None:
        """Check the segments that need it; drop those after one that was cut."""
        for at, segment in enumerate(segments):
            next_base = segments[at + 1].base_offset if at + 1 < len(segments) else None
            unflushed = not self._clean and (next_base is None or next_base > self._recovery_point)
            if not unflushed:
                if segment.base_offset not in self._unindexed and _has_good_indexes(segment):
                    continue
                self._reindex_segment(segment, next_base)
            elif self._recover_segment(segment, next_base) and next_base is not None:
                for follower in segments[at + 1 :]:
                    diagnostics.warn("removing %s: it follows a damaged segment", follower.log_path)
                _remove(segments[at + 1 :])
                del segments[at + 1 :]
                return
            if next_base is not None:
                segment.seal()

    def _reindex_segment(self, segment: Segment, next_base: int | None) -> None:
        """Rebuild the indexes of a synced segment, without cutting anything off."""
        diagnostics.warn("rebuilding indexes of %s: they are missing or damaged", segment.log_path)
        self._recovered.append(segment)
        segment.indexes.clear()
        try:
            for position, header in segment.records.walk(0):
                segment.indexes.note_batch(position, BatchPlace.of(header))
        except CorruptRecordError:
            self._index_whole_batches(segment, INT64_MAX, next_base)

    def _recover_segment(self, segment: Segment, next_base: int | None) -> bool:
        """Rebuild the sparse indexes from whole batches; returns whether the segment was cut."""
        self._recovered.append(segment)
        position, next_offset = self._index_whole_batches(segment, self._synced_to, next_base)
        if position == segment.size:
            return False
        diagnostics.warn(
            "%s: cutting off %d torn or damaged bytes at offset %d",
            segment.log_path,
            segment.size - position,
            next_offset,
        )
        segment.records.truncate(position)
        return True

    def _index_whole_batches(
        self, segment: Segment, synced_to: int, next_base: int | None
    ) -> tuple[int, int]:
        """Index the whole batches, up to one that is neither whole nor synced.

        Returns the position of that one, and the offset that it should have.
        """
        epochs = self._log.leader_epochs
        # The checksum does not cover the base offset, so check its range: an index entry must be
        # able to hold it, and it must be below the next segment's.
        offset_max = segment.base_offset + INT32_MAX
        if next_base is not None:
            offset_max = min(offset_max, next_base - 1)
        batches = BatchChecker(segment.records.file(), segment.size, offset_max)
        segment.indexes.clear()
        position, next_offset = 0, segment.base_offset
        while position < segment.size:
            header = batches.batch_at(position, next_offset)
            if header is not None and (not self._never_cut or header.base_offset == next_offset):
                self._epochs_changed |= epochs.assign(header.leader_epoch, header.base_offset)
                segment.indexes.note_batch(position, BatchPlace.of(header))
                position += header.size
                next_offset = header.last_offset + 1
                continue
            behind = None
            if self._never_cut or next_offset < synced_to:
                behind = batches.batch_behind(position, next_offset)
            if self._never_cut and (next_offset < self._recovery_point or behind is not None):
                raise KafkaStorageError(
                    f"{segment.log_path} is damaged at byte {position}, offset {next_offset}, and"
                    " the broker cannot start without it: restore the file from a copy"
                )
            if behind is None:
                break
            diagnostics.warn(
                "%s: bytes %d to %d, from offset %d on, are damaged. They were synced, so they are"
                " kept, and so is what follows",
                segment.log_path,
                position,
                behind,
                next_offset,
            )
            segment.indexes.index_next()
            position = behind
        return position, next_offset

    def _check_end(self, end_offset: int) -> None:
        """Check that the log does not end before its recovery point."""
        if end_offset >= self._recovery_point:
            return
        if self._never_cut:
            raise KafkaStorageError(
                f"{self._log.folder} ends at offset {end_offset}, but was synced up to"
                f" {self._recovery_point}, and the broker cannot start without the rest: restore"
                " its files from a copy"
            )
        diagnostics.warn(
            "%s ends at offset %d, but was synced up to %d: records are missing",
            self._log.folder,
            end_offset,
            self._recovery_point,
        )

    def _end_of(self, segments: Sequence[Segment]) -> int:
        if not segments:
            return 0
        active = segments[-1]
        try:
            return active.search.read_next_offset()
        except CorruptRecordError as error:
            # A clean shutdown does not leave this, whatever the marker says.
            diagnostics.warn("%s: %s", active.log_path, error)
            self._recover_segment(active, None)
            return active.search.read_next_offset()


def _has_good_indexes(segment: Segment) -> bool:
    try:
        return segment.indexes_fit()
    except CorruptRecordError:
        return False  # cannot be verified


def _assign_epochs(epochs: LeaderEpochs, segments: Sequence[Segment]) -> None:
    epochs.truncate_from_end(
        0
    )  # recovery assigned only those of the last segments; they must be in order
    for segment in segments:
        try:
            for _, header in segment.search.walk_over_damage(0):
                epochs.assign(header.leader_epoch, header.base_offset)
        except CorruptRecordError as error:
            diagnostics.warn(
                "%s: leader epochs are unknown behind the damage: %s", segment.log_path, error
            )


def _remove(segments: Sequence[Segment]) -> None:
    for segment in segments:
        segment.remove()
