"""The two sparse indexes of a segment, and what is noted until their next entries are due.

They can be made anew beside the ones in use, and take their place. Guarded by the lock of its log.
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
            None where no batch was noted since the files were opened.
        are_rebuilt: whether these took the place of damaged ones.
        interval_bytes: how many bytes of batches lie between two entries, and one batch more.
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
        """Over files of the given sizes; `is_empty` says whether the segment has no batch."""
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
        """Whether one of them has no room for another entry."""
        return self.offset_index.is_full or self.time_index.is_full

    @property
    def are_damaged(self) -> bool:
        """Whether one of them is known not to fit the segment."""
        return self.offset_index.is_damaged or self.time_index.is_damaged

    def update_config(self, config: LogConfig) -> None:
        """Go by other values from the next entry on."""
        self.interval_bytes = config.index_interval_bytes
        self.offset_index.limit(config.segment_index_bytes)
        self.time_index.limit(config.segment_index_bytes)

    def note_batch(self, position: int, place: BatchPlace) -> None:
        """Account for a batch at `position`: its times, and entries if they are due."""
        assert self.max_timestamp is not None  # looked up before the first batch is added
        if place.max_timestamp > self.max_timestamp[0]:
            self.max_timestamp = (place.max_timestamp, place.last_offset)
        if self._bytes_since_entry > self.interval_bytes:
            self.offset_index.append(place.last_offset, position)
            self.time_index.maybe_append(*self.max_timestamp)
            self._bytes_since_entry = 0
        self._bytes_since_entry += place.size

    def index_next(self) -> None:
        """Have the next batch indexed: what lies before it is damaged, and no walk gets past."""
        self._bytes_since_entry = self.interval_bytes + 1

    def seal(self) -> None:
        """Force the last time index entry, and write both out.

        Raises:
            OSError: the disk refused. Nothing is lost: the entries stay in memory.
        """
        if self.max_timestamp is not None:  # else nothing came since the last time
            self.time_index.maybe_append(*self.max_timestamp)
        self.spill()

    def spill(self) -> None:
        """Write out what waits in memory.

        Raises:
            OSError: the disk refused. Nothing is lost: the entries stay in memory.
        """
        self.offset_index.spill()
        self.time_index.spill()

    def clear(self) -> None:
        """Forget what both say, before all batches are noted anew."""
        self.offset_index.clear()
        self.time_index.clear()
        self._bytes_since_entry = 0
        self.max_timestamp = (NO_TIMESTAMP, self.offset_index.base_offset)

    def fit(self, base_offset: int, size: int) -> bool:
        """Whether their ends can be those of this segment's: a glance, no proof."""
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
        """Get the names of the files that these were made anew for.

        Raises:
            OSError: the disk refused; this can be tried again.
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
