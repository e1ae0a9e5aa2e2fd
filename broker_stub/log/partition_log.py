"""One partition's log: appends, its offsets, what it remembers of producers, its upkeep.

The serving thread appends and reads; the background thread flushes, applies retention, expires
producers. One lock guards the list of segments, the offsets and the producers' state. Nothing
slow runs under it: a flush and a deletion take from the list what they need, and act outside.
The folder is made by the first append, so ten thousand empty partitions cost no file.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from broker_stub.log.batch.append_info import (
    AppendInfo,
    AppendOrigin,
    BatchPlace,
    again,
    number_batches,
)
from broker_stub.log.batch.validation import validate
from broker_stub.log.files.checkpoint_file import LEADER_EPOCHS
from broker_stub.log.files.file_names import retire_oldest
from broker_stub.log.files.open_files import OpenFiles, SyncFailedError
from broker_stub.log.files.partition_dir import LogFolder
from broker_stub.log.leader_epochs import LeaderEpochs
from broker_stub.log.log_config import INT64_MAX, LogConfig
from broker_stub.log.producers.sequence_check import check_producers
from broker_stub.log.producers.transactions import check_marker, note_batches, read_markers
from broker_stub.log.readable_log import ReadableLog
from broker_stub.log.segment import Segment
from broker_stub.log.segment_list import LogRead
from broker_stub.log.time_lookup import TimestampAndOffset
from pyclient.errors import KafkaStorageError, OffsetOutOfRangeError, RecordBatchTooLargeError

__all__ = ["AppendInfo", "AppendOrigin", "LogRead", "PartitionLog", "TimestampAndOffset"]

_NEVER: Final = INT64_MAX
_FLUSH_AGAIN_MS: Final = 10_000


class PartitionLog(ReadableLog):
    """The log of one partition, open from its construction on."""

    __slots__ = (
        "_clean_end",
        "_log_folder",
        "_request_flush",
        "_request_recall",
        "config",
        "folder",
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
        """An empty log; `recovery.load_log` fills in what its folder holds.

        `request_flush(log, delay_ms)` has `flush` called on the background thread;
        `request_reindexing(log, segment)` has a segment's indexes made anew there, and
        `request_recall(log)` has producers remember more. The last two may be called under the
        lock.
        """
        epochs = LeaderEpochs(os.path.join(folder, LEADER_EPOCHS))
        super().__init__(topic, partition, epochs, partial(request_reindexing, self))
        self.folder = folder
        self.topic_id = topic_id
        self.config = config
        self._log_folder = LogFolder(
            folder, topic_id, files, self.leader_epochs, self.producer_state
        )
        self._request_flush = request_flush
        self._request_recall = partial(request_recall, self)
        self._clean_end = -1  # the end of the log, where it was opened after a clean stop

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
        """Take over what was found in the folder; called once, before any other use.

        `is_clean` says whether all of it is as a clean stop left it.
        """
        for segment in segments:
            self._segments.add(segment)
        self._log_start_offset = log_start_offset
        self._log_end_offset = log_end_offset
        self._high_watermark = log_start_offset
        self._flushes.done(recovery_point)
        self._flushes.note_appended(log_end_offset - recovery_point)
        self._clean_end = log_end_offset if is_clean else -1
        self._ask_for_flush(self._flushes.ask_in_ms(self.config.flush_ms, log_end_offset))

    def name_topic(self, topic_id: bytes) -> None:
        """Take the id of the topic, which the folder does not tell any more.

        Raises:
            KafkaStorageError: the disk refused.
        """
        self.topic_id = topic_id
        self._log_folder.name_topic(topic_id)

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """Note that a leader takes over at the end of the log."""
        with self._lock:
            self._note_leader_epoch(leader_epoch, self._log_end_offset)

    def update_config(self, config: LogConfig) -> None:
        """Go by other values from now on."""
        with self._lock:
            self.config = config
            for segment in self._segments:
                segment.update_config(config)
            flush_in_ms = self._flushes.ask_in_ms(config.flush_ms, self._log_end_offset)
        self._ask_for_flush(flush_in_ms)

    # Appending

    def append(
        self,
        batches: memoryview | bytearray | bytes,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendInfo:
        """Check the batches, give them their offsets, and write them in one go.

        Offsets and epoch are written into the caller's buffer, unless that is read-only.

        Raises:
            KafkaError: as `batch_validation.validate` says, and as below; nothing was written.
            InvalidProducerEpochError, OutOfOrderSequenceError: see `check_producers`.
            TransactionCoordinatorFencedError: see `transactions.check_marker`.
            RecordBatchTooLargeError: the batches are larger than a segment may be.
            KafkaStorageError: the disk refused, now or at a sync before, or the log is closed, or
                it has to look whether this is a retry (see `check_producers`).
        """
        view = memoryview(batches)
        if view.readonly:
            view = memoryview(bytearray(view))
        config = self.config
        headers = validate(view, config, origin, now_ms)
        markers = read_markers(view, headers)
        if len(view) > config.segment_bytes:
            raise RecordBatchTooLargeError(
                f"{len(view)} bytes do not fit a segment of {config.segment_bytes}"
            )
        with self._lock:
            self._check_open()
            self._flushes.check()
            duplicate = check_producers(
                self.producer_state,
                headers,
                self._request_recall,
                from_client=origin is AppendOrigin.CLIENT,
            )
            if duplicate is not None:
                return again(duplicate, config, self._log_start_offset, self.recovery_point)
            for index, marker in markers.items():
                check_marker(self.producer_state, headers[index], marker)
            first_offset = self._log_end_offset
            places = number_batches(view, headers, first_offset, leader_epoch)
            self._note_leader_epoch(leader_epoch, first_offset)
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
            unflushed = self._flushes.note_appended(last_offset + 1 - first_offset)
            # A sealed segment is synced once, and never checked again.
            flush_in_ms = self._flushes.ask_in_ms(
                0 if rolled else config.flush_ms, self._log_end_offset
            )
            info = AppendInfo(
                first_offset,
                last_offset,
                now_ms if config.uses_append_time else -1,
                self._log_start_offset,
                False,
                unflushed >= config.flush_messages,
            )
        self._ask_for_flush(flush_in_ms)
        return info

    def _ask_for_flush(self, delay_ms: int) -> None:
        if delay_ms != _NEVER:
            self._request_flush(self, delay_ms)

    def _note_leader_epoch(self, leader_epoch: int, start_offset: int) -> None:
        if self.leader_epochs.assign(leader_epoch, start_offset) and self._segments:
            self._log_folder.write_leader_epoch(start_offset)

    def _write(self, view: memoryview, places: Sequence[BatchPlace], now_ms: int) -> bool:
        """Write to the active segment, or to a new one: then tell that one has ended."""
        rolled = False
        if not self._segments:
            self._log_folder.make(self._segments, self._log_end_offset, self.config, now_ms)
        elif self._segments.active.should_roll(
            len(view),
            max(place.max_timestamp for place in places),
            places[-1].last_offset,
            self.config,
            now_ms,
        ):
            self._roll(now_ms)
            rolled = True
        self._segments.active.append(view, places)
        return rolled

    def _roll(self, now_ms: int) -> None:
        self._log_folder.roll(self._segments, self._log_end_offset, self.config, now_ms)

    # Maintenance

    def delete_records(self, offset: int) -> int:
        """Move the start of the log to `offset` (-1: the high watermark); the new start.

        Retention deletes the segments that are before it then.

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
        """Take the oldest segments out, as many as `choose` says; the files, to be removed.

        When all go, a new one is started first: the log keeps its end. Those whose files can't be
        renamed stay, with all that follow.

        Raises:
            KafkaStorageError: the new segment could not be made.
            OSError: no file could be renamed.
        """
        with self._lock:
            if self._closed or not self._segments:
                return []
            count = choose(self._segments.all(), self)
            if count == 0:
                return []
            if count == len(self._segments):
                self._roll(now_ms)
            try:
                return retire_oldest(self._segments, count)
            finally:
                self._move_start(self._segments.all()[0].base_offset)

    def _move_start(self, offset: int) -> None:
        if offset > self._log_start_offset:
            self._log_start_offset = offset
            if self.leader_epochs.truncate_from_start(offset) and self._segments:
                self._log_folder.renew_leader_epochs()

    def flush(self) -> None:
        """Fsync what was appended so far. Blocks: background thread.

        Raises:
            KafkaStorageError: the disk refused, now or before.
        """
        self._flush()

    def flush_soon(self) -> None:
        """Have it flushed in the background."""
        self._request_flush(self, 0)

    def _flush(self, *, is_closing: bool = False) -> None:
        with self._lock:
            if self._closed:
                return
            self._flushes.check()
            self._flushes.begin()
            if not self._segments:
                return
            end_offset = self._log_end_offset
            # With the segment that ends there: when it was rolled, its indexes were not synced.
            segments = self._segments.since(self.recovery_point - 1)
        try:
            self._log_folder.sync(segments, is_new=not self.recovery_point, is_closing=is_closing)
        except SyncFailedError as error:
            with self._lock:
                self._flushes.failed(f"{self.folder} could not be synced: {error}")
            raise KafkaStorageError(f"cannot sync {self.folder}: {error}") from error
        except OSError as error:
            # No sync has failed: there was no descriptor, say. It will do later.
            if not is_closing:
                self._request_flush(self, _FLUSH_AGAIN_MS)
            raise KafkaStorageError(f"cannot sync {self.folder}: {error}") from error
        with self._lock:
            self._flushes.done(end_offset)

    def close(self) -> None:
        """Write out what a clean start needs, and let go of the files. Blocks.

        Raises:
            KafkaStorageError: the disk refused; the log is closed, and needs recovery.
        """
        try:
            with self._lock:
                if self._is_as_a_clean_stop_left_it():
                    return
                if self._segments and not self._closed:
                    self._segments.active.seal()
                    if self._log_end_offset > 0:
                        self._log_folder.take_snapshot(self._log_end_offset)
            self._flush(is_closing=True)
        except OSError as error:
            raise KafkaStorageError(f"cannot close {self.folder}: {error}") from error
        finally:
            self.abandon()

    def _is_as_a_clean_stop_left_it(self) -> bool:
        return (
            self._clean_end == self._log_end_offset
            and not self._log_folder.has_changed
            and not any(segment.has_new_indexes for segment in self._segments)
        )

    def abandon(self) -> None:
        """Let go of the files and write nothing, as if the process had been killed."""
        with self._lock:
            self._closed = True
            for segment in self._segments:
                segment.close()
