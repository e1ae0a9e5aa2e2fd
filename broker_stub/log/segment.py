"""A segment: a range of a partition's log, in one `.log` file with its indexes.

`records` is the file, `search` finds batches in it. The last segment of a log is active and takes
the appends; the others are sealed and only read. A segment knows nothing of leaders, producers or
retention. Guarded by the lock of its log.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from functools import partial

from broker_stub.log.batch.append_info import BatchPlace
from broker_stub.log.file_records import FileRecords
from broker_stub.log.files.checkpoint_file import Sync
from broker_stub.log.files.file_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.index.index_search import IndexSearch
from broker_stub.log.index.segment_indexes import SegmentIndexes
from broker_stub.log.index.sparse_index import OffsetIndex, TimeIndex
from broker_stub.log.index.transaction_index import TransactionIndex
from broker_stub.log.log_config import LogConfig
from pyclient.errors import KafkaStorageError


class Segment:
    """One segment: its records, its indexes, and the life of their files.

    Attributes:
        base_offset: the offset in the names of the files.
        folder: the partition's directory.
        records: the `.log` file.
        search: finds batches by offset, position or time, with the sparse indexes.
        transaction_index: the transactions that were aborted in this segment.
    """

    __slots__ = (
        "_config",
        "_created_ms",
        "_ending",
        "_files",
        "base_offset",
        "folder",
        "records",
        "search",
        "transaction_index",
    )

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
        """Use files of the given sizes; `create` makes the files of a new segment.

        Without `created_ms`, the next batch sets the creation time. `ending` is appended to the
        file names while the segment is not yet in use.
        """
        self._ending = ending
        self._files = files
        self._config = config
        self._created_ms = created_ms
        self.folder = folder
        self.base_offset = base_offset
        self.records = FileRecords(self._path(LOG_SUFFIX), base_offset, size, files)
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
        self.search = IndexSearch(self.records, indexes)
        self.transaction_index = TransactionIndex(
            self._path(TRANSACTION_INDEX_SUFFIX), files, stored_bytes=transaction_index_bytes
        )

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
        """Create the files of an empty segment, replacing any leftovers of a crash.

        Raises:
            OSError: the disk refused; none of the files exists.
        """
        segment = cls(folder, base_offset, files, config, created_ms=now_ms, ending=ending)
        try:
            os.ftruncate(files.writer(segment.log_path).fd, 0)
            segment.indexes.spill()
            segment.transaction_index.clear()
        except OSError:
            # The log continues without this segment and may grow past its base offset: a later
            # start must not find the file.
            segment.remove()
            raise
        return segment

    def _path(self, suffix: str) -> str:
        return os.path.join(self.folder, file_name(self.base_offset, suffix + self._ending))

    @property
    def size(self) -> int:
        """The bytes of its records."""
        return self.records.size

    @property
    def log_path(self) -> str:
        """The path of the `.log` file."""
        return self.records.path

    @property
    def latest_ms(self) -> int:
        """The latest record timestamp, or the file's modification time if records have none."""
        timestamp_ms, _ = self.search.max_timestamp
        if timestamp_ms >= 0:
            return timestamp_ms
        return int(os.stat(self.log_path).st_mtime * 1000)

    def age_ms(self, max_timestamp: int, now_ms: int) -> int:
        """How much later `max_timestamp` is than the segment's first batch.

        If that batch has no timestamp, the time since the segment was created.
        """
        first_timestamp = self.records.first_timestamp
        if first_timestamp >= 0:
            return max_timestamp - first_timestamp
        if self._created_ms is None:
            self._created_ms = now_ms
        return now_ms - self._created_ms

    # --- writing -----------------------------------------------------------------------------

    def append(self, batches: memoryview, places: Sequence[BatchPlace]) -> None:
        """Write the batches and index them.

        Raises:
            KafkaStorageError: the disk refused; the segment is unchanged.
        """
        indexes = self.search.indexes
        if indexes.max_timestamp is None:
            self.search.read_max_timestamp()  # before the write, because it may fail
        position = self.records.size
        self.records.append(batches)
        for place in places:
            indexes.note_batch(position, place)
            position += place.size

    def seal(self) -> None:
        """Add the last time index entry, and write the indexes to their files.

        Raises:
            KafkaStorageError: the disk refused. The entries stay in memory.
        """
        try:
            self.indexes.seal()
            self.transaction_index.spill()
            self.records.cut_torn_tail()
        except OSError as error:
            raise KafkaStorageError(
                f"cannot write the indexes in {self.folder}: {error}"
            ) from error

    def sync(self, *, with_indexes: bool, sync: Sync | None = None) -> None:
        """Fsync the records and, once the segment is sealed, the indexes.

        Recovery rebuilds the indexes of the active segment anyway. A missing index file is
        rebuilt and does not fail the sync. Called on the background thread, without the lock.
        """
        sync = sync or self._files.sync
        sync(self.log_path)
        if not with_indexes:
            return
        for index in (self.offset_index, self.time_index):
            try:
                sync(index.path)
            except FileNotFoundError:
                if os.path.exists(self.log_path):  # else the segment was removed meanwhile
                    self.search.report_damaged(index)
        if self.transaction_index:
            # A missing one fails the sync: readers would take aborted records for committed ones.
            # Recovery rebuilds it.
            sync(self.transaction_index.path)

    # --- indexes -----------------------------------------------------------------------------

    @property
    def indexes(self) -> SegmentIndexes:
        """The offset index and the time index in use."""
        return self.search.indexes

    @property
    def offset_index(self) -> OffsetIndex:
        """Maps offsets to positions."""
        return self.search.indexes.offset_index

    @property
    def time_index(self) -> TimeIndex:
        """Maps timestamps to offsets."""
        return self.search.indexes.time_index

    def rebuild_indexes_by(self, on_damaged: Callable[["Segment"], None]) -> None:
        """From now on, call `on_damaged` for damaged indexes instead of rebuilding them at once."""
        self.search.on_damaged = partial(on_damaged, self)

    def update_config(self, config: LogConfig) -> None:
        """Use the topic's new configuration."""
        self._config = config
        self.indexes.update_config(config)

    def new_indexes(self, ending: str) -> SegmentIndexes:
        """Empty indexes for this segment, in files of their own; see `use_indexes`."""
        return SegmentIndexes(
            self.folder, self.base_offset, self._files, self._config, ending=ending
        )

    def use_indexes(self, indexes: SegmentIndexes, *, is_sealed: bool) -> None:
        """Replace the indexes by rebuilt ones that cover every batch.

        Raises:
            OSError: the disk refused; the caller may try again.
        """
        if is_sealed:
            indexes.seal()
        indexes.take_place_of(self.indexes)
        self.search.indexes = indexes

    def indexes_fit(self) -> bool:
        """Whether the indexes look like those of this segment: a quick check, not a proof.

        Raises:
            CorruptRecordError: the segment does not start with a batch.
        """
        return (
            self.indexes.fit(self.base_offset, self.size)
            and (len(self.time_index) > 0 or self.records.read_first_timestamp() < 0)
            and self.transaction_index.is_sound(self.base_offset)
        )

    # --- files -------------------------------------------------------------------------------

    def close(self) -> None:
        """Drop the open files from the cache; readers of a slice keep theirs."""
        indexes = (self.offset_index, self.time_index, self.transaction_index)
        for path in (self.log_path, *(index.path for index in indexes)):
            self._files.forget(path)

    def remove(self) -> None:
        """Close the segment and remove its files."""
        self.close()
        for suffix in SEGMENT_SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(suffix))

    def rename(self, ending: str) -> list[str]:
        """Change the ending of the file names; returns the new paths."""
        self.close()
        renamed = []
        for suffix in SEGMENT_SUFFIXES:
            path = self._path(suffix)
            target = path.removesuffix(self._ending) + ending
            with contextlib.suppress(FileNotFoundError):
                os.rename(path, target)
                renamed.append(target)
        self._ending = ending
        self.records.path = self._path(LOG_SUFFIX)
        self.offset_index.path = self._path(INDEX_SUFFIX)
        self.time_index.path = self._path(TIME_INDEX_SUFFIX)
        self.transaction_index.path = self._path(TRANSACTION_INDEX_SUFFIX)
        return renamed
