"""A segment: a stretch of a partition's log in one `.log` file, with its indexes.

The last segment of a log is active and takes the appends; the others are sealed and only read.
A segment knows nothing of leaders, producers or retention. Guarded by the lock of its log.
"""

import contextlib
import os
from collections.abc import Sequence
from typing import Final

from broker_stub.log.batch.append_info import BatchPlace
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.index.segment_indexes import INDEX_SUFFIX, TIME_INDEX_SUFFIX, SegmentIndexes
from broker_stub.log.index.transaction_index import TransactionIndex
from broker_stub.log.log_config import LogConfig
from broker_stub.log.segment_reader import SegmentReader
from pyclient.errors import KafkaStorageError

LOG_SUFFIX: Final = ".log"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
# Behind those names, while a segment comes or goes; see `segment_swap`.
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
REBUILT_SUFFIX: Final = ".rebuilt"  # see `reindexing`

# An index has four bytes for the offset behind the segment's base.
OFFSETS_MAX: Final = 2**31 - 1


def file_name(offset: int, suffix: str) -> str:
    """Kafka's name of a file that starts, or was taken, at `offset`."""
    return f"{offset:020d}{suffix}"


class Segment(SegmentReader):
    """One segment. Sizes and times are kept in memory."""

    __slots__ = ("_config", "_created_ms", "_ending", "_torn", "folder", "transaction_index")

    def __init__(
        self,
        folder: str,
        base_offset: int,
        files: OpenFiles,
        config: LogConfig,
        *,
        size: int = 0,
        index_bytes: int = 0,
        time_index_bytes: int = 0,
        transaction_index_bytes: int = 0,
        created_ms: int | None = None,
        ending: str = "",
    ) -> None:
        """Over files of the given sizes; `create` makes the files of a new segment.

        Without `created_ms` it counts as created when the next batch comes. `ending` stands
        behind the files' names while the segment is not yet in use.
        """
        self._ending = ending
        self.folder = folder
        indexes = SegmentIndexes(
            folder,
            base_offset,
            files,
            config,
            index_bytes=index_bytes,
            time_index_bytes=time_index_bytes,
            is_empty=size == 0,
            ending=ending,
        )
        log_path = os.path.join(folder, file_name(base_offset, LOG_SUFFIX + ending))
        super().__init__(log_path, base_offset, size, files, indexes)
        self.transaction_index = TransactionIndex(
            self._path(TRANSACTION_INDEX_SUFFIX), files, stored_bytes=transaction_index_bytes
        )
        self._config = config
        self._created_ms = created_ms
        self._torn = False

    @classmethod
    def create(
        cls,
        folder: str,
        base_offset: int,
        files: OpenFiles,
        config: LogConfig,
        now_ms: int,
        ending: str = "",
    ) -> "Segment":
        """Make the files of an empty segment; what a crash left under their names goes.

        Raises:
            OSError: the disk refused, and has none of them.
        """
        segment = cls(folder, base_offset, files, config, created_ms=now_ms, ending=ending)
        try:
            os.ftruncate(files.writer(segment.log_path).fd, 0)
            segment._indexes.spill()
            segment.transaction_index.clear()
        except OSError:
            # A log that goes on without it may grow past its offset: it must not be found there.
            segment.remove()
            raise
        return segment

    def _path(self, suffix: str) -> str:
        return os.path.join(self.folder, file_name(self.base_offset, suffix + self._ending))

    # Appending

    def append(self, batches: memoryview, places: Sequence[BatchPlace]) -> None:
        """Write the batches, whole and in one go, and index them.

        Raises:
            KafkaStorageError: the disk refused; the segment is as it was before.
        """
        if self._indexes.max_timestamp is None:
            self._read_max_timestamp()  # before the write: it may fail
        self._write(batches)
        for place in places:
            self._indexes.note_batch(self.size, place)
            self.size += place.size

    def _write(self, batches: memoryview) -> None:
        try:
            descriptor = self._files.writer(self.log_path).fd
            if self._torn:
                os.ftruncate(descriptor, self.size)
                self._torn = False
            written = os.pwrite(descriptor, batches, self.size)
            while written < len(batches):
                written += os.pwrite(descriptor, batches[written:], self.size + written)
        except OSError as error:
            self._cut_torn_write()
            raise KafkaStorageError(f"cannot append to {self.log_path}: {error}") from error

    def _cut_torn_write(self) -> None:
        self._torn = True
        with contextlib.suppress(OSError):  # then the next append, or recovery, cuts it
            os.truncate(self.log_path, self.size)
            self._torn = False

    def should_roll(
        self, incoming: int, max_timestamp: int, last_offset: int, config: LogConfig, now_ms: int
    ) -> bool:
        """Whether `incoming` bytes, up to these time and offset, belong in a new segment."""
        return (
            self.size > config.segment_bytes - incoming
            or (self.size > 0 and self._age_ms(max_timestamp, now_ms) > config.roll_ms)
            or self._indexes.are_full
            or last_offset - self.base_offset > OFFSETS_MAX
        )

    def _age_ms(self, max_timestamp: int, now_ms: int) -> int:
        """How far the records' time has come since the segment's first batch."""
        first_timestamp = self.first_timestamp
        if first_timestamp >= 0:
            return max_timestamp - first_timestamp
        if self._created_ms is None:
            self._created_ms = now_ms
        return now_ms - self._created_ms

    @property
    def latest_ms(self) -> int:
        """The time of the latest record; of the last write, where records have no time."""
        timestamp_ms, _ = self.max_timestamp
        if timestamp_ms >= 0:
            return timestamp_ms
        return int(os.stat(self.log_path).st_mtime * 1000)

    def seal(self) -> None:
        """Force the last time index entry, and write the indexes out.

        Raises:
            KafkaStorageError: the disk refused. Nothing is lost: the entries stay in memory.
        """
        try:
            self._indexes.seal()
            self.transaction_index.spill()
            if self._torn:
                os.truncate(self.log_path, self.size)
                self._torn = False
        except OSError as error:
            raise KafkaStorageError(
                f"cannot write the indexes in {self.folder}: {error}"
            ) from error

    def sync(self, *, with_indexes: bool) -> None:
        """Fsync the records and, once the segment is sealed, the indexes.

        Recovery rebuilds the indexes of the active segment in any case. One that somebody removed
        is made anew, and is no reason to leave the records unsynced. Called without the log's
        lock, on the background thread.
        """
        self._files.sync(self.log_path)
        if not with_indexes:
            return
        for index in (self.offset_index, self.time_index):
            try:
                self._files.sync(index.path)
            except FileNotFoundError:
                if os.path.exists(self.log_path):  # else retention or compaction was faster
                    self.report_damaged(index)
        if self.transaction_index:
            # Without it readers would take aborted records for good ones: recovery makes it anew.
            self._files.sync(self.transaction_index.path)

    # The indexes

    def update_config(self, config: LogConfig) -> None:
        """Go by other values from now on: those of the topic, once they are known."""
        self._config = config
        self._indexes.update_config(config)

    def new_indexes(self, ending: str) -> SegmentIndexes:
        """Empty indexes for this segment, with names of their own; see `use_indexes`."""
        return SegmentIndexes(
            self.folder, self.base_offset, self._files, self._config, ending=ending
        )

    def use_indexes(self, indexes: SegmentIndexes, *, is_sealed: bool) -> None:
        """Go by indexes that were made anew and know every batch.

        Raises:
            OSError: the disk refused; this can be tried again.
        """
        if is_sealed:
            indexes.seal()
        indexes.take_place_of(self._indexes)
        self._indexes = indexes

    @property
    def has_new_indexes(self) -> bool:
        """Whether its indexes were made anew since it was opened."""
        return self._indexes.are_rebuilt

    def indexes_fit(self) -> bool:
        """Whether the indexes can be those of this segment: a glance, no proof.

        Raises:
            CorruptRecordError: it does not begin with a batch.
        """
        return (
            self._indexes.fit(self.base_offset, self.size)
            and (len(self.time_index) > 0 or self.read_first_timestamp() < 0)
            and self.transaction_index.is_sound(self.base_offset)
        )

    def truncate(self, size: int) -> None:
        """Cut off what comes after `size` bytes; the indexes are the caller's business."""
        os.truncate(self.log_path, size)
        self.size = size

    # The files

    def close(self) -> None:
        """Let go of the open files."""
        indexes = (self.offset_index, self.time_index, self.transaction_index)
        for path in (self.log_path, *(index.path for index in indexes)):
            self._files.forget(path)

    def remove(self) -> None:
        """Remove the files."""
        self.close()
        for suffix in SEGMENT_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(suffix))

    def rename(self, ending: str) -> list[str]:
        """Give the files another ending; where they are then."""
        self.close()
        renamed = []
        for suffix in SEGMENT_SUFFIXES:
            path = self._path(suffix)
            target = path.removesuffix(self._ending) + ending
            with contextlib.suppress(FileNotFoundError):
                os.rename(path, target)
                renamed.append(target)
        self._ending = ending
        self.log_path = self._path(LOG_SUFFIX)
        self.offset_index.path = self._path(INDEX_SUFFIX)
        self.time_index.path = self._path(TIME_INDEX_SUFFIX)
        self.transaction_index.path = self._path(TRANSACTION_INDEX_SUFFIX)
        return renamed
