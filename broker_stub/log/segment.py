"""A segment: a stretch of a partition's log in one `.log` file, with its indexes.

The last segment of a log is active and takes the appends; the others are sealed and only read.
A segment knows nothing of leaders, producers or retention. Guarded by the lock of its log.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from broker_stub import diagnostics
from broker_stub.log.append_info import BatchPlace
from broker_stub.log.batch_header import (
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
)
from broker_stub.log.file_slice import read_exactly
from broker_stub.log.indexes import OffsetIndex, TimeIndex
from broker_stub.log.log_config import LogConfig
from broker_stub.log.open_files import OpenFile, OpenFiles
from broker_stub.log.transaction_index import TransactionIndex
from pyclient.errors import CorruptRecordError, KafkaStorageError
from pyclient.records.batch import HEADER_SIZE

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
# Behind those names, while a segment comes or goes; see `segment_swap`.
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

# A walk reads this much at a time: about what lies between two index entries.
_WALK_BYTES: Final = 8192
# An index has four bytes for the offset behind the segment's base.
OFFSETS_MAX: Final = 2**31 - 1


def file_name(offset: int, suffix: str) -> str:
    """Kafka's name of a file that starts, or was taken, at `offset`."""
    return f"{offset:020d}{suffix}"


class Segment:
    """One segment. Sizes and times are kept in memory; the file is opened when it is needed."""

    __slots__ = (
        "_bytes_since_entry",
        "_created_ms",
        "_ending",
        "_files",
        "_first_timestamp",
        "_index_interval_bytes",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_torn",
        "base_offset",
        "folder",
        "log_path",
        "offset_index",
        "size",
        "time_index",
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
        created_ms: int = 0,
        ending: str = "",
    ) -> None:
        """Over files of the given sizes; `create` makes the files of a new segment.

        `ending` stands behind the files' names while the segment is not yet in use.
        """
        self._ending = ending
        self.folder = folder
        self.base_offset = base_offset
        self.size = size
        self.log_path = self._path(LOG_SUFFIX)
        self.offset_index = OffsetIndex(
            self._path(INDEX_SUFFIX),
            base_offset,
            files,
            max_bytes=config.segment_index_bytes,
            stored_bytes=index_bytes,
        )
        self.time_index = TimeIndex(
            self._path(TIME_INDEX_SUFFIX),
            base_offset,
            files,
            max_bytes=config.segment_index_bytes,
            stored_bytes=time_index_bytes,
        )
        self.transaction_index = TransactionIndex(
            self._path(TRANSACTION_INDEX_SUFFIX), files, stored_bytes=transaction_index_bytes
        )
        self._files = files
        self._created_ms = created_ms
        self._index_interval_bytes = config.index_interval_bytes
        self._bytes_since_entry = 0
        self._first_timestamp: int | None = None
        # None: not looked up yet. A sealed segment's time index ends with them.
        self._max_timestamp: int | None = None if size else NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
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
        """Make the files of an empty segment; what a crash left under their names goes."""
        segment = cls(folder, base_offset, files, config, created_ms=now_ms, ending=ending)
        os.ftruncate(files.writer(segment.log_path).fd, 0)
        segment.offset_index.spill()
        segment.time_index.spill()
        segment.transaction_index.clear()
        return segment

    def _path(self, suffix: str) -> str:
        return os.path.join(self.folder, file_name(self.base_offset, suffix + self._ending))

    # Appending

    def append(self, batches: memoryview, places: Sequence[BatchPlace]) -> None:
        """Write the batches, whole and in one go, and index them.

        Raises:
            KafkaStorageError: the disk refused; the segment is as it was before.
        """
        self._write(batches)
        for place in places:
            self.note_batch(self.size, place)
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

    def note_batch(self, position: int, place: BatchPlace) -> None:
        """Account for a batch at `position`: its times, and an index entry if one is due."""
        if place.max_timestamp > self.max_timestamp[0]:
            self._max_timestamp = place.max_timestamp
            self._max_timestamp_offset = place.last_offset
        if self._bytes_since_entry > self._index_interval_bytes:
            self.offset_index.append(place.last_offset, position)
            self.time_index.maybe_append(*self.max_timestamp)
            self._bytes_since_entry = 0
        self._bytes_since_entry += place.size

    def should_roll(
        self, incoming: int, max_timestamp: int, last_offset: int, config: LogConfig, now_ms: int
    ) -> bool:
        """Whether `incoming` bytes, up to these time and offset, belong in a new segment."""
        return (
            self.size > config.segment_bytes - incoming
            or (self.size > 0 and self._age_ms(max_timestamp, now_ms) > config.roll_ms)
            or self.offset_index.is_full
            or self.time_index.is_full
            or last_offset - self.base_offset > OFFSETS_MAX
        )

    def _age_ms(self, max_timestamp: int, now_ms: int) -> int:
        """How far the records' time has come since the segment's first batch."""
        first_timestamp = self.first_timestamp
        if first_timestamp >= 0:
            return max_timestamp - first_timestamp
        return now_ms - self._created_ms

    def seal(self) -> None:
        """Force the last time index entry, and write the indexes out.

        Raises:
            KafkaStorageError: the disk refused. Nothing is lost: the entries stay in memory.
        """
        self.time_index.maybe_append(*self.max_timestamp)
        try:
            self.offset_index.spill()
            self.time_index.spill()
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

        Recovery rebuilds the indexes of the active segment in any case. Called without the log's
        lock, on the background thread.
        """
        self._files.sync(self.log_path)
        if with_indexes:
            self._files.sync(self.offset_index.path)
            self._files.sync(self.time_index.path)
            if self.transaction_index:
                self._files.sync(self.transaction_index.path)

    # Reading

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """The latest timestamp, and the last offset of the first batch that has it."""
        if self._max_timestamp is None:
            self._max_timestamp, self._max_timestamp_offset = self.time_index.last()
        return self._max_timestamp, self._max_timestamp_offset

    @property
    def first_timestamp(self) -> int:
        """The time of the first batch; -1 where it has none, or there is no batch."""
        if self._first_timestamp is None and self.size:
            self._first_timestamp = next(self.walk(0))[1].max_timestamp
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    def file(self) -> OpenFile:
        """The `.log` file, open for reading at least.

        Raises:
            KafkaStorageError: it cannot be opened.
        """
        try:
            return self._files.reader(self.log_path)
        except OSError as error:
            raise KafkaStorageError(f"cannot open {self.log_path}: {error}") from error

    def walk(self, position: int, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Batch headers with their positions, from `position` on.

        Raises:
            CorruptRecordError: a header says what cannot be.
            KafkaStorageError: the file cannot be read.
        """
        end = self.size if end is None else end
        if position >= end:
            return
        file = self.file()
        block, block_start = b"", position
        while position < end:
            if position + HEADER_SIZE > block_start + len(block):
                block_start = position
                block = read_exactly(file, position, min(_WALK_BYTES, self.size - position))
            if len(block) < HEADER_SIZE:
                raise CorruptRecordError("the segment ends inside a batch", position=position)
            header = read_header(block, position - block_start)
            if header.size < HEADER_SIZE:
                raise CorruptRecordError(
                    f"{self.log_path} has a batch of {header.size} bytes", position=position
                )
            yield position, header
            position += header.size

    def find(self, offset: int) -> tuple[int, BatchHeader] | None:
        """The first batch that ends at or after `offset`, with its position."""
        for position, header in self._walk_from(self.offset_index.lookup(offset), 0):
            if header.last_offset >= offset:
                return position, header
        return None

    def whole_batches(self, start: int, max_bytes: int, limit: int) -> tuple[int, int]:
        """Where the last batch ends that fits `max_bytes` from `start` on; one at least.

        `start` is where a batch starts, `limit` where one ends, further than `max_bytes` away.
        Also tells the offset after the batches.
        """
        end, next_offset = start, -1
        entry = self.offset_index.lookup_position(start + max_bytes)
        if entry is not None and entry[1] <= start:
            entry = None
        for position, header in self._walk_from(entry, start):
            if position > end:  # the index leads past batches that fit
                end, next_offset = position, header.base_offset
            if end > start and position + header.size > start + max_bytes:
                break
            end, next_offset = position + header.size, header.last_offset + 1
            if end >= limit:
                break
        return end, next_offset

    def walk_around(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Batch headers with their positions, from one not far before `position` on."""
        return self._walk_from(self.offset_index.lookup_position(position), 0)

    def _walk_from(
        self, entry: tuple[int, int] | None, start: int
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Walk from an index entry, or from `start` when there is none or it is wrong."""
        if entry is not None:
            walk = self.walk(entry[1])
            first = next(walk, None)
            if first is not None and first[1].last_offset == entry[0]:
                return chain((first,), walk)
            self._mend_indexes()
        return self.walk(start)

    def read_next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry on.

        Raises:
            CorruptRecordError: the segment does not end where a batch ends.
        """
        next_offset, end = self.base_offset, 0
        for position, header in self._walk_from(self.offset_index.last(), 0):
            next_offset, end = header.last_offset + 1, position + header.size
        if end != self.size:
            raise CorruptRecordError("the segment ends inside a batch", position=self.size)
        return next_offset

    def _mend_indexes(self) -> None:
        diagnostics.warn("the index of %s is damaged; it is made anew", self.log_path)
        self.clear_indexes()
        for position, header in self.walk(0):
            self.note_batch(
                position, BatchPlace(header.last_offset, header.max_timestamp, header.size)
            )
        self.seal()

    def indexes_fit(self) -> bool:
        """Whether the ends of the indexes can be those of this segment's: a glance, no proof."""
        last = self.offset_index.last()
        return (
            (last is None or (last[0] >= self.base_offset and last[1] < self.size))
            and self.time_index.last()[1] >= self.base_offset
            and self.offset_index.is_ordered_at_the_end()
            and self.time_index.is_ordered_at_the_end()
            and self.transaction_index.is_sound(self.base_offset)
        )

    def truncate(self, size: int) -> None:
        """Cut off what comes after `size` bytes; the indexes are the caller's business."""
        os.truncate(self.log_path, size)
        self.size = size

    def clear_indexes(self) -> None:
        """Forget what the two sparse indexes say, before they are noted anew."""
        self.offset_index.clear()
        self.time_index.clear()
        self._bytes_since_entry = 0
        self._max_timestamp, self._max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self._first_timestamp = None

    # The files

    def close(self) -> None:
        """Let go of the open files."""
        indexes = (self.offset_index, self.time_index, self.transaction_index)
        for path in (self.log_path, *(index.path for index in indexes)):
            self._files.forget(path)

    def paths(self) -> list[str]:
        """The files there are of it."""
        return [path for suffix in SEGMENT_SUFFIXES if os.path.exists(path := self._path(suffix))]

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
