"""One partition's log: appends, reads, offsets, producers' state, flushes and deletions.

The serving thread appends and reads; the background thread flushes, applies retention and expires
producers. One lock guards the list of segments, the offsets, the leader epochs and the producers'
state. Nothing slow runs under it: a flush and a deletion take what they need from the list and
act outside. Single offsets can be read without the lock, since each is replaced as a whole.

The first append creates the directory, so ten thousand empty partitions cost no file.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Final, TypeVar

from broker_stub.log.batch.append_info import (
    AppendInfo,
    AppendOrigin,
    BatchPlace,
    duplicate_append,
    number_batches,
)
from broker_stub.log.batch.recompression import recompress
from broker_stub.log.batch.validation import validate
from broker_stub.log.cleaning.segment_deletion import retire_oldest
from broker_stub.log.files.checkpoint_file import LEADER_EPOCHS, Sync
from broker_stub.log.files.open_files import OpenFiles, SyncFailedError
from broker_stub.log.files.partition_dir import PartitionDir
from broker_stub.log.flushing import FlushState
from broker_stub.log.index.transaction_index import AbortedTransaction
from broker_stub.log.leader_epochs import EpochEnd, LeaderEpochs
from broker_stub.log.log_config import INT64_MAX, PRODUCER_CODEC, LogConfig
from broker_stub.log.producers.producer_state import (
    ProducerEntry,
    ProducerState,
    RememberedBatch,
)
from broker_stub.log.producers.sequence_check import check_producers
from broker_stub.log.producers.transactions import (
    EPOCH_BUMP_FROM,
    TransactionRanges,
    check_marker,
    note_batches,
    read_markers,
)
from broker_stub.log.rolling import roll, should_roll
from broker_stub.log.segment import Segment
from broker_stub.log.segment_list import LogRead, SegmentList
from broker_stub.log.time_lookup import TimestampAndOffset, find_max_timestamp, find_timestamp
from pyclient.errors import KafkaStorageError, OffsetOutOfRangeError, RecordBatchTooLargeError

__all__ = ["AppendInfo", "AppendOrigin", "LogRead", "PartitionLog", "TimestampAndOffset"]

_FLUSH_RETRY_MS: Final = 10_000

Result = TypeVar("Result")


class PartitionLog:
    """The log of one partition.

    Attributes:
        cleaned_to: the offset up to which the log was compacted. Background thread only.
    """

    __slots__ = (
        "_clean_end",
        "_closed",
        "_directory",
        "_flushes",
        "_high_watermark",
        "_is_sealed",
        "_lock",
        "_log_end_offset",
        "_log_start_offset",
        "_request_flush",
        "_request_recall",
        "_segments",
        "cleaned_to",
        "config",
        "folder",
        "leader_epochs",
        "partition",
        "producer_state",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        folder: str,
        topic: str,
        partition: int,
        *,
        topic_id: bytes,
        config: LogConfig,
        files: OpenFiles,
        request_flush: Callable[["PartitionLog", int], None],
        request_reindexing: Callable[["PartitionLog", Segment], None],
        request_recall: Callable[["PartitionLog"], None],
    ) -> None:
        """An empty log; `log_recovery.load_log` loads what its directory holds.

        The callbacks request work on the background thread: `request_flush(log, delay_ms)` a
        `flush`, `request_reindexing(log, segment)` a rebuild of the segment's indexes,
        `request_recall(log)` a read of the producers' older batches. The last two may be called
        under the lock.
        """
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.folder = folder
        self.leader_epochs = LeaderEpochs(os.path.join(folder, LEADER_EPOCHS))
        self.producer_state = ProducerState()
        self.cleaned_to = 0
        self._lock = Lock()
        self._log_start_offset = 0
        self._log_end_offset = 0
        self._high_watermark = 0
        self._flushes = FlushState()
        self._segments = SegmentList(partial(request_reindexing, self))
        self._directory = PartitionDir(
            folder, topic_id, files, self.leader_epochs, self.producer_state
        )
        self._request_flush = request_flush
        self._request_recall = partial(request_recall, self)
        self._clean_end = -1  # the end offset, if the log was opened after a clean shutdown
        self._is_sealed = False  # for `close`: nothing is appended any more
        self._closed = False

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic}-{self.partition}, {self.folder})"

    def restore(
        self,
        segments: Sequence[Segment],
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        *,
        is_clean: bool,
    ) -> None:
        """Set what was found in the directory; called once, before any other use.

        `is_clean` says whether everything is as a clean shutdown left it.
        """
        for segment in segments:
            self._segments.add(segment)
        self._log_start_offset = log_start_offset
        self._log_end_offset = log_end_offset
        self._high_watermark = log_start_offset
        self._flushes.on_synced(recovery_point)
        self._flushes.on_append(log_end_offset - recovery_point, self.config)
        self._clean_end = log_end_offset if is_clean else -1
        self._schedule_flush(self._flushes.next_flush_ms(self.config.flush_ms, log_end_offset))

    def set_topic_id(self, topic_id: bytes) -> None:
        """Set the id of the topic, which the directory has lost.

        Raises:
            KafkaStorageError: the disk refused.
        """
        self.topic_id = topic_id
        self._directory.set_topic_id(topic_id)

    def update_config(self, config: LogConfig) -> None:
        """Use the topic's new configuration."""
        with self._lock:
            self.config = config
            for segment in self._segments:
                segment.update_config(config)
            delay_ms = self._flushes.next_flush_ms(config.flush_ms, self._log_end_offset)
        self._schedule_flush(delay_ms)

    # --- offsets and epochs ------------------------------------------------------------------

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._log_end_offset

    @property
    def high_watermark(self) -> int:
        """The offset up to which all in-sync replicas have the log."""
        return self._high_watermark

    @property
    def recovery_point(self) -> int:
        """The offset up to which everything is synced."""
        return self._flushes.recovery_point

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which every transaction is committed or aborted."""
        stable = self.producer_state.last_stable_offset(self._high_watermark)
        return min(self._high_watermark, max(stable, self._log_start_offset))

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark forward, at most to the log end; returns whether it moved."""
        with self._lock:
            before = self._high_watermark
            self._high_watermark = max(before, min(offset, self._log_end_offset))
            self.producer_state.on_high_watermark(self._high_watermark)
            return self._high_watermark > before

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """Start a leader epoch at the end of the log."""
        with self._lock:
            self._assign_leader_epoch(leader_epoch, self._log_end_offset)

    def _assign_leader_epoch(self, leader_epoch: int, start_offset: int) -> None:
        if self.leader_epochs.assign(leader_epoch, start_offset) and self._segments:
            self._directory.write_leader_epoch(start_offset)

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """The end offset of an epoch, or of the last earlier one that this log has."""
        with self._lock:
            return self.leader_epochs.end_offset_for(leader_epoch, self._log_end_offset)

    # --- producers ---------------------------------------------------------------------------

    def producers(self) -> tuple[ProducerEntry, ...]:
        """The producers that the log currently remembers."""
        with self._lock:
            return tuple(self.producer_state)

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether a producer has written to the log in a transaction that has not ended."""
        with self._lock:
            entry = self.producer_state.get(producer_id)
            return entry is not None and entry.is_in_transaction and entry.epoch == epoch

    def has_fenced(self, producer_id: int, epoch: int) -> bool:
        """Whether a newer epoch of a producer has written to the log."""
        with self._lock:
            entry = self.producer_state.get(producer_id)
            return entry is not None and epoch < entry.epoch

    def recall_producers(self, older: Mapping[int, Iterable[RememberedBatch]]) -> None:
        """Add older batches, by producer id, that were read from the log's tail."""
        with self._lock:
            self.producer_state.recall(older)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget idempotent producers that wrote nothing for `expiration_ms`."""
        with self._lock:
            self.producer_state.expire(now_ms, expiration_ms)

    # --- appending ---------------------------------------------------------------------------

    def append(
        self,
        batches: memoryview | bytearray | bytes,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        is_verified: bool = False,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Validate the batches, assign their offsets, and write them.

        Offsets and leader epoch are written into the caller's buffer, unless that is read-only.
        `is_verified` says that the batch's transaction has this partition. `transaction_version` is
        that of the producer of a marker.

        Raises:
            KafkaError: as in `validation.validate`, `recompression.recompress` and below; nothing
                was written.
            InvalidProducerEpochError, OutOfOrderSequenceError, InvalidTxnStateError: see
                `check_producers`.
            TransactionCoordinatorFencedError: see `transactions.check_marker`.
            RecordBatchTooLargeError: the batches are larger than `segment.bytes`.
            KafkaStorageError: the disk refused, an earlier sync failed, the log is closed, or the
                producer's older batches have to be read first (see `check_producers`).
        """
        view = memoryview(batches)
        if view.readonly:
            view = memoryview(bytearray(view))
        config = self.config
        headers = validate(view, config, origin, now_ms, self.topic, self.partition)
        if config.compression_type != PRODUCER_CODEC:
            view, headers = recompress(view, headers, config)
        markers = read_markers(view, headers)
        if len(view) > config.segment_bytes:
            raise RecordBatchTooLargeError(
                f"{len(view)} bytes do not fit into a segment of {config.segment_bytes}"
            )
        with self._lock:
            self._check_open()
            self._flushes.check()
            duplicate = check_producers(
                self.producer_state,
                headers,
                self._request_recall,
                from_client=origin is AppendOrigin.CLIENT,
                is_verified=is_verified,
                starts_at_zero=transaction_version >= EPOCH_BUMP_FROM,
            )
            if duplicate is not None:
                return duplicate_append(
                    duplicate, config, self._log_start_offset, self.recovery_point
                )
            for index, marker in markers.items():
                check_marker(
                    self.producer_state,
                    headers[index],
                    marker,
                    ends_with_new_epoch=transaction_version >= EPOCH_BUMP_FROM,
                )
            first_offset = self._log_end_offset
            places = number_batches(view, headers, first_offset, leader_epoch)
            self._assign_leader_epoch(leader_epoch, first_offset)
            rolled = self._write(view, places, now_ms)
            note_batches(
                self.producer_state,
                self._segments.active.transaction_index,
                headers,
                [place.last_offset for place in places],
                markers,
            )
            last_offset = places[-1].last_offset
            self._log_end_offset = last_offset + 1
            flush_due = self._flushes.on_append(last_offset + 1 - first_offset, config)
            # A sealed segment is synced at once: recovery never checks it again.
            delay_ms = self._flushes.next_flush_ms(
                0 if rolled else config.flush_ms, self._log_end_offset
            )
            info = AppendInfo(
                first_offset,
                last_offset,
                now_ms if config.uses_append_time else -1,
                self._log_start_offset,
                False,
                flush_due,
            )
        self._schedule_flush(delay_ms)
        return info

    def _write(self, view: memoryview, places: Sequence[BatchPlace], now_ms: int) -> bool:
        """Write to the active segment, rolled first if needed; returns whether it was rolled."""
        segments = self._segments
        rolled = False
        if not segments:
            self._directory.create(segments, self._log_end_offset, self.config, now_ms)
        elif should_roll(
            segments.active,
            len(view),
            max(place.max_timestamp for place in places),
            places[-1].last_offset,
            self.config,
            now_ms,
        ):
            roll(segments, self._directory, self._log_end_offset, self.config, now_ms)
            rolled = True
        segments.active.append(view, places)
        return rolled

    # --- reading -----------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """A copy of the list of segments, oldest first."""
        with self._lock:
            return tuple(self._segments)

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        limit_offset: int | None = None,
        min_one_batch: bool = True,
    ) -> LogRead:
        """Whole batches of one segment, starting with the batch that contains `offset`.

        Reads only batches before `limit_offset`, by default the end of the log. With
        `min_one_batch` the first batch is returned even if it is larger than `max_bytes`.

        Raises:
            OffsetOutOfRangeError: the offset is before the log start or after the log end.
            KafkaStorageError: the disk refused, or the log is closed.
        """
        with self._lock:
            self._check_open()
            end_offset = self._log_end_offset
            if not self._log_start_offset <= offset <= end_offset:
                raise OffsetOutOfRangeError(
                    f"{self.topic}-{self.partition} has offsets {self._log_start_offset} to "
                    f"{end_offset}, not {offset}"
                )
            if limit_offset is not None and limit_offset < end_offset:
                end_offset = limit_offset
            if offset >= end_offset:
                return LogRead(None, offset)
            return self._segments.read(
                offset, max_bytes, end_offset, self._log_end_offset, min_one_batch
            )

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that may have records in a range of offsets."""
        with self._lock:
            self._check_open()
            return self._segments.aborted_transactions(from_offset, to_offset)

    def uncommitted(self) -> TransactionRanges:
        """All aborted and all open transactions."""
        with self._lock:
            start, end = self._log_start_offset, self._log_end_offset
            aborted = self._segments.aborted_transactions(start, end)
            return TransactionRanges(aborted, self.producer_state.open_transactions)

    def lookup_timestamp(self, timestamp_ms: int) -> TimestampAndOffset | None:
        """The first record with a timestamp of at least `timestamp_ms`.

        Raises:
            KafkaStorageError, CorruptRecordError: the batch cannot be read.
        """
        with self._lock:
            self._check_open()
            return find_timestamp(self._segments.all(), timestamp_ms, self._log_start_offset)

    def max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the latest timestamp; raises as `lookup_timestamp`."""
        with self._lock:
            self._check_open()
            return find_max_timestamp(self._segments.all())

    def while_open(self, act: Callable[[SegmentList], Result]) -> Result | None:
        """Call `act`, which must be quick, under the lock; None if the log is closed."""
        with self._lock:
            return None if self._closed else act(self._segments)

    def _check_open(self) -> None:
        if self._closed:
            raise KafkaStorageError(f"the log of {self.topic}-{self.partition} is closed")

    # --- deleting ----------------------------------------------------------------------------

    def delete_records(self, offset: int) -> int:
        """Move the log start to `offset` (-1: the high watermark); returns the new start.

        Retention later deletes the segments before it.

        Raises:
            OffsetOutOfRangeError: the offset is past the high watermark.
        """
        with self._lock:
            self._check_open()
            target = self._high_watermark if offset == -1 else offset
            if not 0 <= target <= self._high_watermark:
                raise OffsetOutOfRangeError(
                    f"{self.topic}-{self.partition} can be deleted up to {self._high_watermark}, "
                    f"not {offset}"
                )
            self._move_start(target)
            return self._log_start_offset

    def detach_oldest(
        self, choose: Callable[[Sequence[Segment], "PartitionLog"], int], now_ms: int
    ) -> list[str]:
        """Take out as many of the oldest segments as `choose` says; returns the files to remove.

        If that is all of them, the log rolls first and so keeps its end offset. A segment whose
        files cannot be renamed stays, and so do those after it.

        Raises:
            KafkaStorageError: the new segment could not be created.
            OSError: no file could be renamed.
        """
        with self._lock:
            if self._closed or not self._segments:
                return []
            count = choose(self._segments.all(), self)
            if count == 0:
                return []
            if count == len(self._segments):
                roll(self._segments, self._directory, self._log_end_offset, self.config, now_ms)
            try:
                return retire_oldest(self._segments, count)
            finally:
                self._move_start(self._segments.all()[0].base_offset)

    def _move_start(self, offset: int) -> None:
        if offset > self._log_start_offset:
            self._log_start_offset = offset
            if self.leader_epochs.truncate_from_start(offset) and self._segments:
                self._directory.rewrite_leader_epochs()

    # --- flushing and closing ----------------------------------------------------------------

    def flush(self) -> None:
        """Fsync everything appended so far. Blocks: background thread only.

        Raises:
            KafkaStorageError: the disk refused, now or earlier.
        """
        self._flush()

    def flush_soon(self) -> None:
        """Request a flush on the background thread."""
        self._request_flush(self, 0)

    def _schedule_flush(self, delay_ms: int) -> None:
        if delay_ms != INT64_MAX:
            self._request_flush(self, delay_ms)

    def _flush(self, *, is_closing: bool = False, sync: Sync | None = None) -> None:
        with self._lock:
            if self._closed:
                return
            self._flushes.check()
            self._flushes.on_begin()
            if not self._segments:
                return
            end_offset = self._log_end_offset
            # Includes the segment that ends at the recovery point: if it was rolled there, its
            # indexes are not synced yet.
            segments = self._segments.since(self.recovery_point - 1)
        try:
            self._directory.sync(
                segments, is_new=not self.recovery_point, is_closing=is_closing, sync=sync
            )
        except SyncFailedError as error:
            with self._lock:
                self._flushes.on_failed(f"cannot sync {self.folder}: {error}")
            raise KafkaStorageError(f"cannot sync {self.folder}: {error}") from error
        except OSError as error:
            # No fsync failed (out of descriptors, say), so a later flush can succeed.
            if not is_closing:
                self._request_flush(self, _FLUSH_RETRY_MS)
            raise KafkaStorageError(f"cannot sync {self.folder}: {error}") from error
        with self._lock:
            self._flushes.on_synced(end_offset)

    def seal(self) -> bool:
        """Write what a clean start needs, before `close`; False if nothing has changed. Blocks.

        Raises:
            KafkaStorageError: the disk refused.
        """
        with self._lock:
            if self._is_unchanged():
                return False
            try:
                if self._segments and not self._closed:
                    self._segments.active.seal()
                    if self._log_end_offset > 0:
                        self._directory.write_snapshot(self._log_end_offset)
            except OSError as error:
                raise KafkaStorageError(f"cannot close {self.folder}: {error}") from error
            self._is_sealed = True
            return True

    def close(self, sync: Sync | None = None) -> None:
        """Write and sync what a clean start needs, and close the files. Blocks.

        `sync` replaces the fsync of a file.

        Raises:
            KafkaStorageError: the disk refused; the log is closed and needs recovery.
        """
        try:
            if self._is_sealed or self.seal():
                self._flush(is_closing=True, sync=sync)
        finally:
            self.abandon()

    def _is_unchanged(self) -> bool:
        """Whether the files are still as a clean shutdown left them."""
        return (
            self._clean_end == self._log_end_offset
            and not self._directory.has_changed
            and not any(segment.indexes.are_rebuilt for segment in self._segments)
        )

    def abandon(self) -> None:
        """Close the files without writing anything, as if the process had been killed."""
        with self._lock:
            self._closed = True
            for segment in self._segments:
                segment.close()
