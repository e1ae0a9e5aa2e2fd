"""The offset index and the time index of a segment, and when they get their next entries.

Rebuilt ones are made beside those in use and then replace them. Guarded by the lock of its log.
"""

import os

from broker_stub.log.batch.append_info import BatchPlace
from broker_stub.log.batch.header import NO_TIMESTAMP
from broker_stub.log.files.file_names import INDEX_SUFFIX, TIME_INDEX_SUFFIX, file_name
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.index.sparse_index import OffsetIndex, TimeIndex
from broker_stub.log.log_config import LogConfig


class SegmentIndexes:
    """Both indexes, filled batch by batch.

    Attributes:
        max_timestamp: the latest timestamp, and the last offset of the first batch that has it;
            None if no batch was added since the files were opened.
        are_rebuilt: whether these replaced other ones.
        interval_bytes: `index.interval.bytes`; entries are one batch farther apart.
    """

    __slots__ = (
        "_bytes_since_entry",
        "_files",
        "are_rebuilt",
        "interval_bytes",
        "max_timestamp",
        "offset_index",
        "time_index",
    )

    def __init__(
        self,
        folder: str,
        base_offset: int,
        files: OpenFiles,
        config: LogConfig,
        *,
        index_bytes: int = 0,
        time_index_bytes: int = 0,
        is_empty: bool = True,
        ending: str = "",
    ) -> None:
        """Use files of the given sizes; `is_empty` says whether the segment has no batch."""
        max_bytes = config.segment_index_bytes
        path = os.path.join(folder, file_name(base_offset, INDEX_SUFFIX + ending))
        self.offset_index = OffsetIndex(
            path, base_offset, files, max_bytes=max_bytes, stored_bytes=index_bytes
        )
        path = os.path.join(folder, file_name(base_offset, TIME_INDEX_SUFFIX + ending))
        self.time_index = TimeIndex(
            path, base_offset, files, max_bytes=max_bytes, stored_bytes=time_index_bytes
        )
        self.max_timestamp = (NO_TIMESTAMP, base_offset) if is_empty else None
        self.are_rebuilt = False
        self._files = files
        self.interval_bytes = config.index_interval_bytes
        self._bytes_since_entry = 0

    @property
    def are_full(self) -> bool:
        """Whether one of the two has no room for another entry."""
        return self.offset_index.is_full or self.time_index.is_full

    @property
    def are_damaged(self) -> bool:
        """Whether one of the two is known not to match the segment."""
        return self.offset_index.is_damaged or self.time_index.is_damaged

    def update_config(self, config: LogConfig) -> None:
        """Use the topic's new configuration from the next entry on."""
        self.interval_bytes = config.index_interval_bytes
        self.offset_index.limit(config.segment_index_bytes)
        self.time_index.limit(config.segment_index_bytes)

    def note_batch(self, position: int, place: BatchPlace) -> None:
        """Add the batch at `position`: update the latest timestamp, add entries if due."""
        assert self.max_timestamp is not None  # read before the first batch is added
        if place.max_timestamp > self.max_timestamp[0]:
            self.max_timestamp = (place.max_timestamp, place.last_offset)
        if self._bytes_since_entry > self.interval_bytes:
            self.offset_index.append(place.last_offset, position)
            self.time_index.maybe_append(*self.max_timestamp)
            self._bytes_since_entry = 0
        self._bytes_since_entry += place.size

    def index_next(self) -> None:
        """Index the next batch, because no walk gets over the damage before it."""
        self._bytes_since_entry = self.interval_bytes + 1

    def seal(self) -> None:
        """Add the last time index entry, and write both to their files.

        Raises:
            OSError: the disk refused. The entries stay in memory.
        """
        if self.max_timestamp is not None:  # else no batch was added since the last time
            self.time_index.maybe_append(*self.max_timestamp)
        self.spill()

    def spill(self) -> None:
        """Write the entries in memory to the files.

        Raises:
            OSError: the disk refused. The entries stay in memory.
        """
        self.offset_index.spill()
        self.time_index.spill()

    def clear(self) -> None:
        """Drop all entries of both, before a rebuild."""
        self.offset_index.clear()
        self.time_index.clear()
        self._bytes_since_entry = 0
        self.max_timestamp = (NO_TIMESTAMP, self.offset_index.base_offset)

    def fit(self, base_offset: int, size: int) -> bool:
        """Whether their last entries look right for this segment: a quick check, not a proof."""
        last = self.offset_index.last()
        return (
            (last is None or (last[0] >= base_offset and last[1] < size))
            and self.time_index.last()[1] >= base_offset
            and self.offset_index.is_ordered_at_the_end()
            and self.time_index.is_ordered_at_the_end()
        )

    def sync(self) -> None:
        """Fsync both indexes. Blocks."""
        self._files.sync(self.offset_index.path)
        self._files.sync(self.time_index.path)

    def take_place_of(self, others: "SegmentIndexes") -> None:
        """Replace the files of `others` by these.

        Raises:
            OSError: the disk refused; the caller may try again.
        """
        for own, other in (
            (self.offset_index, others.offset_index),
            (self.time_index, others.time_index),
        ):
            os.replace(own.path, other.path)
            self._files.forget(own.path)
            self._files.forget(other.path)
            own.path = other.path
        self.are_rebuilt = True
