"""One partition's log: appends, reads, its offsets, and what it remembers of producers.

The serving thread appends and reads; the background thread flushes, applies retention, expires
producers. One lock guards the list of segments, the offsets and the producers' state. Nothing
slow runs under it: a flush and a deletion take from the list what they need, and act outside.
The folder is made by the first append, so ten thousand empty partitions cost no file.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from threading import Lock
from typing import Final, NamedTuple

from broker_stub.log.batch_header import BatchHeader, put_base_offset, put_leader_epoch
from broker_stub.log.batch_validation import AppendOrigin, validate
from broker_stub.log.checkpoints import LEADER_EPOCHS
from broker_stub.log.file_slice import FileSlice
from broker_stub.log.leader_epochs import LeaderEpochs
from broker_stub.log.log_config import INT64_MAX, LogConfig
from broker_stub.log.open_files import OpenFiles
from broker_stub.log.partition_metadata import write_partition_metadata
from broker_stub.log.producer_snapshot import SNAPSHOT_SUFFIX, write_snapshot
from broker_stub.log.producer_state import ProducerState, RememberedBatch
from broker_stub.log.producer_tail import recall_batches
from broker_stub.log.segment import BatchPlace, Segment, file_name, sync_path
from broker_stub.log.time_lookup import TimestampAndOffset, find_max_timestamp, find_timestamp
from pyclient.errors import KafkaStorageError, OffsetOutOfRangeError, RecordBatchTooLargeError

__all__ = ["AppendInfo", "AppendOrigin", "LogRead", "PartitionLog", "TimestampAndOffset"]

_BASE_OFFSET: Final = attrgetter("base_offset")
_NEVER: Final = INT64_MAX


class AppendInfo(NamedTuple):
    """Where batches were written, or were written before."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 where records keep the time of their producer."""
    log_start_offset: int
    duplicate: bool = False
    """A retry: nothing was written now, and the offsets are those of the first time."""
    flush_due: bool = False
    """`flush.messages` is reached: the caller flushes, off the serving thread."""


class LogRead(NamedTuple):
    """Whole batches of one segment, the one that contains the asked offset first."""

    records: FileSlice | None
    """None: there is nothing to read at this offset yet."""
    next_offset: int
    """Where a reader goes on."""


class PartitionLog:
    """The log of one partition, open from its construction on."""

    __slots__ = (
        "_closed",
        "_files",
        "_high_watermark",
        "_lock",
        "_log_end_offset",
        "_log_start_offset",
        "_read_hint",
        "_request_flush",
        "_segments",
        "_unflushed",
        "config",
        "folder",
        "leader_epochs",
        "partition",
        "producer_state",
        "recovery_point",
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
    ) -> None:
        """An empty log; `recovery.load_log` fills in what its folder holds.

        `request_flush(log, delay_ms)` has `flush` called on the background thread.
        """
        self.folder = folder
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.leader_epochs = LeaderEpochs(os.path.join(folder, LEADER_EPOCHS))
        self.producer_state = ProducerState()
        self.recovery_point = 0
        self._files = files
        self._request_flush = request_flush
        self._lock = Lock()
        self._segments: list[Segment] = []  # by base offset; the last one is active
        self._log_start_offset = 0
        self._log_end_offset = 0
        self._high_watermark = 0
        self._unflushed = 0
        self._closed = False
        # Where the last read ended (offset, segment, position): most readers go on there.
        self._read_hint: tuple[int, Segment, int] | None = None

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic}-{self.partition}, {self.folder})"

    def restore(
        self, segments: Sequence[Segment], log_start_offset: int, log_end_offset: int
    ) -> None:
        """Take over what was found in the folder; called once, before any other use."""
        self._segments = list(segments)
        self._log_start_offset = log_start_offset
        self._log_end_offset = log_end_offset
        self._high_watermark = log_start_offset

    # Offsets

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
    def last_stable_offset(self) -> int:
        """The offset up to which every transaction is decided: there are none, so all is."""
        return self._high_watermark

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def first_segment_offset(self) -> int:
        """Where the first segment starts; 0 when there is none."""
        segments = self.segments
        return segments[0].base_offset if segments else 0

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments at this moment, oldest first."""
        with self._lock:
            return tuple(self._segments)

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark forward, at most to the end; tell whether it moved."""
        with self._lock:
            before = self._high_watermark
            self._high_watermark = max(before, min(offset, self._log_end_offset))
            return self._high_watermark > before

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """Note that a leader takes over at the end of the log."""
        with self._lock:
            self._note_leader_epoch(leader_epoch, self._log_end_offset)

    def update_config(self, config: LogConfig) -> None:
        """Go by other values from now on."""
        self.config = config

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
            InvalidProducerEpochError, OutOfOrderSequenceError: see `ProducerState.check`.
            RecordBatchTooLargeError: the batches are larger than a segment may be.
            KafkaStorageError: the disk refused, or the log is closed.
        """
        view = memoryview(batches)
        if view.readonly:
            view = memoryview(bytearray(view))
        config = self.config
        headers = validate(view, config, origin, now_ms)
        if len(view) > config.segment_bytes:
            raise RecordBatchTooLargeError(
                f"{len(view)} bytes do not fit a segment of {config.segment_bytes}"
            )
        with self._lock:
            self._check_open()
            duplicate = self._check_producers(headers, origin)
            if duplicate is not None:
                return self._answer_again(duplicate)
            first_offset = self._log_end_offset
            places = _number_batches(view, headers, first_offset, leader_epoch)
            self._note_leader_epoch(leader_epoch, first_offset)
            flush_in_ms = self._write(view, places, now_ms)
            for header, place in zip(headers, places, strict=True):
                self.producer_state.update(header, place.last_offset)
            last_offset = places[-1].last_offset
            self._log_end_offset = last_offset + 1
            self._unflushed += last_offset + 1 - first_offset
            info = AppendInfo(
                first_offset,
                last_offset,
                now_ms if config.uses_append_time else -1,
                self._log_start_offset,
                flush_due=self._unflushed >= config.flush_messages,
            )
        if flush_in_ms != _NEVER:
            self._request_flush(self, flush_in_ms)
        return info

    def _check_producers(
        self, headers: Sequence[BatchHeader], origin: AppendOrigin
    ) -> RememberedBatch | None:
        """Refuse batches that their producers may not write; a batch that is there already."""
        from_client = origin is AppendOrigin.CLIENT
        for header in headers:
            if header.producer_id < 0:
                continue
            entry = self.producer_state.get(header.producer_id)
            if from_client and entry is not None:
                duplicate = entry.duplicate_of(header)
                if duplicate is None and entry.may_have_forgotten(header):
                    recall_batches(entry, self._segments)
                    duplicate = entry.duplicate_of(header)
                if duplicate is not None:
                    return duplicate
            self.producer_state.check(header, check_sequence=from_client)
        return None

    def _answer_again(self, batch: RememberedBatch) -> AppendInfo:
        return AppendInfo(
            batch.first_offset,
            batch.last_offset,
            batch.timestamp if self.config.uses_append_time else -1,
            self._log_start_offset,
            duplicate=True,
        )

    def _note_leader_epoch(self, leader_epoch: int, start_offset: int) -> None:
        if not self.leader_epochs.assign(leader_epoch, start_offset) or not self._segments:
            return
        try:
            self.leader_epochs.write()
        except OSError as error:
            self.leader_epochs.truncate_from_end(start_offset)
            raise KafkaStorageError(f"cannot write {self.leader_epochs.path}: {error}") from error

    def _write(self, view: memoryview, places: Sequence[BatchPlace], now_ms: int) -> int:
        """Write to the active segment, or to a new one; tell when a flush is needed."""
        flush_in_ms = _NEVER if self._unflushed else self.config.flush_ms
        if not self._segments:
            self._make_folder(now_ms)
        elif self._segments[-1].should_roll(
            len(view),
            max(place.max_timestamp for place in places),
            places[-1].last_offset,
            self.config,
            now_ms,
        ):
            self._roll(now_ms)
            flush_in_ms = 0  # a sealed segment is synced once, and never checked again
        self._segments[-1].append(view, places)
        return flush_in_ms

    def _make_folder(self, now_ms: int) -> None:
        try:
            os.makedirs(self.folder, exist_ok=True)
            write_partition_metadata(self.folder, self.topic_id)
            self.leader_epochs.write()
            self._add_segment(now_ms)
        except OSError as error:
            raise KafkaStorageError(f"cannot make {self.folder}: {error}") from error

    def _roll(self, now_ms: int) -> None:
        """Close the active segment and start the next one at the end of the log."""
        sealed = self._segments[-1]
        sealed.seal()
        try:
            self._take_snapshot()
            self._add_segment(now_ms)
        except OSError as error:
            raise KafkaStorageError(f"cannot roll in {self.folder}: {error}") from error
        self._files.forget(sealed.log_path)  # its next reader needs no writer

    def _add_segment(self, now_ms: int) -> None:
        self._segments.append(
            Segment.create(self.folder, self._log_end_offset, self._files, self.config, now_ms)
        )

    def _take_snapshot(self) -> None:
        path = os.path.join(self.folder, file_name(self._log_end_offset, SNAPSHOT_SUFFIX))
        write_snapshot(path, self.producer_state)

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        limit_offset: int | None = None,
        min_one_batch: bool = True,
    ) -> LogRead:
        """Whole batches from the one that contains `offset` on, of one segment.

        Only what lies before `limit_offset` (the end of the log, when None). With
        `min_one_batch` the first batch comes even if it is larger than `max_bytes`.

        Raises:
            OffsetOutOfRangeError: the offset is before the start or after the end.
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
            at, position = self._locate(offset)
            segment = self._segments[at]
            limit, next_offset = self._limit_in(at, end_offset)
            if limit - position > max_bytes:
                limit, next_offset = segment.whole_batches(position, max_bytes, limit)
                if limit - position > max_bytes and not min_one_batch:
                    limit = position
            if limit <= position:
                return LogRead(None, offset)
            self._read_hint = (next_offset, segment, limit)
            return LogRead(FileSlice(segment.file(), position, limit - position), next_offset)

    def _locate(self, offset: int) -> tuple[int, int]:
        """Which segment has the batch of `offset`, or the next batch after it, and where."""
        segments = self._segments
        at = max(bisect_right(segments, offset, key=_BASE_OFFSET) - 1, 0)
        if self._read_hint is not None:
            hinted_offset, segment, position = self._read_hint
            if hinted_offset == offset and segment is segments[at] and position < segment.size:
                return at, position
        # Compaction can leave a segment that ends before the next one starts.
        while (found := segments[at].find(offset)) is None:
            if at + 1 == len(segments):
                return at, segments[at].size
            at += 1
        return at, found[0]

    def _limit_in(self, at: int, end_offset: int) -> tuple[int, int]:
        """Where in a segment the batches before `end_offset` end, and the offset after them."""
        segment = self._segments[at]
        last = at + 1 == len(self._segments)
        next_base = self._log_end_offset if last else self._segments[at + 1].base_offset
        if end_offset >= next_base:
            return segment.size, next_base
        found = segment.find(end_offset)
        return (segment.size, next_base) if found is None else (found[0], found[1].base_offset)

    def lookup_timestamp(self, timestamp_ms: int) -> TimestampAndOffset | None:
        """The first record that is not older than `timestamp_ms`.

        Raises:
            KafkaStorageError, CorruptRecordError: the batch cannot be read.
        """
        with self._lock:
            self._check_open()
            return find_timestamp(self._segments, timestamp_ms, self._log_start_offset)

    def max_timestamp(self) -> TimestampAndOffset | None:
        """The first of the records with the latest timestamp; None without one.

        Raises:
            KafkaStorageError, CorruptRecordError: the batch cannot be read.
        """
        with self._lock:
            self._check_open()
            return find_max_timestamp(self._segments)

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
    ) -> list[Segment]:
        """Take the oldest segments out, as many as `choose` says; the caller deletes their files.

        When all go, a new one is started first: the log keeps its end.

        Raises:
            KafkaStorageError: the new segment could not be made.
        """
        with self._lock:
            if self._closed:
                return []
            count = choose(self._segments, self)
            if count == 0:
                return []
            if count == len(self._segments):
                self._roll(now_ms)
            detached = self._segments[:count]
            del self._segments[:count]
            self._read_hint = None
            self._move_start(self._segments[0].base_offset)
            return detached

    def _move_start(self, offset: int) -> None:
        if offset > self._log_start_offset:
            self._log_start_offset = offset
            if self.leader_epochs.truncate_from_start(offset) and self._segments:
                self.leader_epochs.write()

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget idempotent producers that have not written for so long."""
        with self._lock:
            self.producer_state.expire(now_ms, expiration_ms)

    def flush(self) -> None:
        """Fsync what was appended so far. Blocks: background thread.

        Raises:
            KafkaStorageError: the disk refused.
        """
        with self._lock:
            if self._closed or not self._segments:
                return
            end_offset = self._log_end_offset
            at = max(bisect_right(self._segments, self.recovery_point, key=_BASE_OFFSET) - 1, 0)
            segments = self._segments[at:]
            self._unflushed = 0
        try:
            for segment in segments:
                segment.sync(with_indexes=segment is not segments[-1])
            sync_path(self.leader_epochs.path)
            sync_path(self.folder)
        except (OSError, KafkaStorageError) as error:
            raise KafkaStorageError(f"cannot sync {self.folder}: {error}") from error
        self.recovery_point = max(self.recovery_point, end_offset)

    def close(self) -> None:
        """Write out what a clean start needs, and let go of the files. Blocks.

        Raises:
            KafkaStorageError: the disk refused; the log is closed, and needs recovery.
        """
        try:
            self.flush()
            with self._lock:
                if self._segments and not self._closed:
                    self._segments[-1].seal()
                    self._take_snapshot()
        except OSError as error:
            raise KafkaStorageError(f"cannot close {self.folder}: {error}") from error
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the files and write nothing, as if the process had been killed."""
        with self._lock:
            self._closed = True
            self._let_go()

    def _let_go(self) -> None:
        self._read_hint = None
        for segment in self._segments:
            segment.close()

    def _check_open(self) -> None:
        if self._closed:
            raise KafkaStorageError(f"the log of {self.topic}-{self.partition} is closed")


def _number_batches(
    view: memoryview, headers: Sequence[BatchHeader], first_offset: int, leader_epoch: int
) -> list[BatchPlace]:
    """Write offsets and leader epoch into the batches; where they will be."""
    places = []
    position, offset = 0, first_offset
    for header in headers:
        put_base_offset(view, position, offset)
        put_leader_epoch(view, position, leader_epoch)
        last_offset = offset + header.last_offset_delta
        places.append(BatchPlace(last_offset, header.max_timestamp, header.size))
        position += header.size
        offset = last_offset + 1
    return places
