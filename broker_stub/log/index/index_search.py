"""Finds the batches of a segment by offset, position or time.

The sparse indexes give the position where a walk over the batch headers starts. An entry is used
only if the batch at its position agrees with it. Otherwise the index is reported as damaged, and
reads walk without it until it is rebuilt. Such walks are bounded because they run on the serving
thread: past the bound the caller gets a retriable error. Guarded by the lock of the log.
"""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Final

from broker_stub import diagnostics
from broker_stub.log.batch.header import NO_TIMESTAMP, BatchHeader
from broker_stub.log.file_records import FileRecords
from broker_stub.log.index.index_builder import IndexBuilder
from broker_stub.log.index.index_file import DamagedIndexError
from broker_stub.log.index.segment_indexes import SegmentIndexes
from broker_stub.log.index.sparse_index import Entry, SparseIndex
from pyclient.errors import CorruptRecordError, KafkaStorageError

# The most headers that a read walks over where an index entry should have led further.
_SCANNED_BATCHES_MAX: Final = 4096


class IndexSearch:
    """Searches one segment through its indexes.

    Attributes:
        indexes: the indexes in use.
        on_damaged: called when an index turns out to be damaged, to have it rebuilt on another
            thread. While it is None, as when a log is opened, the index is rebuilt at once.
    """

    __slots__ = ("_rebuild_requested_for", "_records", "indexes", "on_damaged")

    def __init__(self, records: FileRecords, indexes: SegmentIndexes) -> None:
        self._records = records
        self.indexes = indexes
        self.on_damaged: Callable[[], None] | None = None
        self._rebuild_requested_for: SegmentIndexes | None = None

    # --- by offset and position --------------------------------------------------------------

    def find(self, offset: int) -> tuple[int, BatchHeader] | None:
        """The first batch that ends at or after `offset`, with its position.

        Raises:
            CorruptRecordError: the batch, or one on the way to it, is damaged.
            KafkaStorageError: too far to walk until the index is rebuilt; try again.
        """
        try:
            found = self._find(offset)
            if found is not None and found[1].base_offset > offset:
                self._check_ahead(offset, found)
        except CorruptRecordError:
            # The batch behind damaged bytes is indexed: see `SegmentIndexes.index_next`.
            found = self._batch_of(self._next_entry(offset))
            if found is None or found[1].base_offset > offset:
                if not self.indexes.are_rebuilt:
                    self._request_rebuild()  # rebuilt indexes have that entry
                raise
        return found

    def _find(self, offset: int) -> tuple[int, BatchHeader] | None:
        walk = self._walk_by_index(lambda: self.indexes.offset_index.lookup(offset))
        start = 0
        for count, (position, header) in enumerate(walk):
            if header.last_offset >= offset:
                return position, header
            if count == 0:
                start = position
            elif count >= _SCANNED_BATCHES_MAX:
                self._check_distance(position - start)
        return None

    def _check_ahead(self, offset: int, found: tuple[int, BatchHeader]) -> None:
        """Check a gap before `found` against the next index entry.

        Raises:
            CorruptRecordError: there is no gap; the base offset of `found` is damaged.
        """
        position, header = found
        entry = self._next_entry(offset)
        if entry is not None and position < entry[1] and entry[0] <= header.last_offset:
            raise CorruptRecordError(
                f"the base offset of the batch at byte {position} of {self._records.path} is too"
                " high",
                position=position,
            )

    def _next_entry(self, offset: int) -> Entry | None:
        """The first index entry at or after `offset`."""
        index = self.indexes.offset_index
        try:
            return None if index.is_damaged else index.lookup_after(offset)
        except DamagedIndexError:
            return None

    def _batch_of(self, entry: Entry | None) -> tuple[int, BatchHeader] | None:
        """The batch that an entry points to, if its header agrees with the entry."""
        if entry is None or entry[1] < 0:
            return None
        try:
            found = next(self._records.walk(entry[1]), None)
        except CorruptRecordError:
            return None
        return found if found is not None and found[1].last_offset == entry[0] else None

    def whole_batches(self, start: int, max_bytes: int, limit: int) -> tuple[int, int]:
        """The end of the last batch that fits into `max_bytes` from `start`, and the next offset.

        Includes at least one batch. `start` and `limit` are batch boundaries, at least
        `max_bytes` apart.

        Raises:
            CorruptRecordError: the first batch is damaged. A damaged later one ends the range.
        """
        end, next_offset = start, -1
        walk = self._walk_by_index(
            lambda: self.indexes.offset_index.lookup_position(start + max_bytes), start
        )
        try:
            for position, header in islice(walk, _SCANNED_BATCHES_MAX):
                if position > end:  # the index skipped batches that fit
                    end, next_offset = position, header.base_offset
                if end > start and position + header.size > start + max_bytes:
                    break
                end, next_offset = position + header.size, header.last_offset + 1
                if end >= limit:
                    break
        except CorruptRecordError:
            if end == start:
                raise
        return end, next_offset

    def batch_around(self, position: int) -> int:
        """The start of a batch at or before `position`, close to it if the index is usable."""
        walk = self._walk_by_index(lambda: self.indexes.offset_index.lookup_position(position))
        return next(walk, (self._records.size, None))[0]

    def read_next_offset(self) -> int:
        """The offset after the last batch, found by a walk from the last index entry.

        Raises:
            CorruptRecordError: the segment does not end at a batch boundary.
        """
        next_offset, end = self._records.base_offset, 0
        for position, header in self._walk_by_index(self.indexes.offset_index.last):
            next_offset, end = header.last_offset + 1, position + header.size
        if end != self._records.size:
            raise CorruptRecordError("the segment ends inside a batch", position=self._records.size)
        return next_offset

    def walk_over_damage(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Walk like `FileRecords.walk`, but skip damaged bytes up to the next indexed batch.

        Used only while a log is opened, when no other thread uses the index.

        Raises:
            CorruptRecordError: no indexed batch follows the damage.
            KafkaStorageError: the file or the index cannot be read.
        """
        size, path = self._records.size, self._records.path
        while position < size:
            indexed = self.indexes.offset_index.position_after(position)
            end = size if indexed is None else indexed
            entry = None if indexed is None else self.indexes.offset_index.lookup_position(indexed)
            try:
                for at, header in self._records.walk(position, end):
                    if at + header.size > end:
                        raise CorruptRecordError("a batch ends inside another one", position=at)
                    if entry and header.last_offset >= entry[0] and self._batch_of(entry):
                        raise CorruptRecordError("batch offset too high", position=at)
                    yield at, header
            except CorruptRecordError as error:
                if indexed is None:
                    raise
                diagnostics.warn("%s: skipping damaged bytes up to %d: %s", path, end, error)
            position = end

    def _walk_by_index(
        self, lookup: Callable[[], Entry | None], start: int = 0
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Walk from the batch that `lookup` finds in the offset index, or from `start` if later."""
        walk_from = self._records.walk
        if not self.indexes.offset_index.is_damaged:
            try:
                entry = lookup()
                if entry is None or 0 < entry[1] <= start:
                    return walk_from(start)
                walk = walk_from(entry[1]) if entry[1] >= 0 else iter(())
                try:
                    first = next(walk, None)
                except CorruptRecordError:
                    before = self._entry_before_damage(entry)
                    if before is not None:
                        self._request_rebuild()
                        return walk_from(max(before, start))
                    first = None
                if first is not None and first[1].last_offset == entry[0]:
                    return chain((first,), walk) if entry[1] > start else walk_from(start)
            except DamagedIndexError:
                pass  # the index file is gone
            self.report_damaged(self.indexes.offset_index)
        return walk_from(start)

    def _entry_before_damage(self, entry: Entry) -> int | None:
        """Where to start a walk when the batch that `entry` points to is unreadable.

        None if neither neighbouring entry agrees with the log: then the index is damaged, not
        the log.

        Raises:
            DamagedIndexError: the index file is gone.
        """
        before = self.indexes.offset_index.lookup_position(entry[1] - 1)
        if before is not None and before[0] < entry[0] and self._batch_of(before) is not None:
            return before[1]
        return None if self._batch_of(self._next_entry(entry[0] + 1)) is None else 0

    # --- by time -----------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """The latest timestamp, and the last offset of the first batch that has it.

        Raises:
            KafkaStorageError: unknown until the time index is rebuilt; try again.
        """
        known = self.indexes.max_timestamp
        return self.read_max_timestamp() if known is None else known

    def read_max_timestamp(self) -> Entry:
        """Load the latest timestamp from the time index; raises as `max_timestamp`."""
        # It is the last entry: sealing or closing a segment adds it.
        latest = self._checked_time(self.indexes.time_index.last)
        if latest is not None and latest[0] == NO_TIMESTAMP and self._records.first_timestamp >= 0:
            self.report_damaged(self.indexes.time_index)
        elif latest is not None:
            self.indexes.max_timestamp = latest
        if self.indexes.max_timestamp is None:
            raise self._not_indexed_yet()
        return self.indexes.max_timestamp

    def walk_since(self, timestamp_ms: int, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Batches from `offset` on; batches older than `timestamp_ms` may be left out.

        Raises:
            KafkaStorageError: too far to walk until the index is rebuilt; try again.
        """
        entry = self._checked_time(lambda: self.indexes.time_index.lookup(timestamp_ms))
        found = self.find(offset if entry is None else max(entry[1], offset))
        start = found[0] if found else self._records.size
        for count, batch in enumerate(self._records.walk(start)):
            if entry is None and count == _SCANNED_BATCHES_MAX and self.on_damaged is not None:
                raise self._not_indexed_yet()
            yield batch

    def _checked_time(self, lookup: Callable[[], Entry]) -> Entry | None:
        """What `lookup` finds in the time index, if the batch it names agrees; else None.

        If the batch disagrees, the index is reported as damaged.
        """
        if not self.indexes.time_index.is_damaged:
            try:
                timestamp, offset = entry = lookup()
            except DamagedIndexError:
                pass
            else:
                if timestamp == NO_TIMESTAMP:
                    return NO_TIMESTAMP, self._records.base_offset
                try:
                    found = self.find(offset)
                except CorruptRecordError:
                    return entry  # cannot be verified; good enough for appends
                if (
                    found is not None
                    and found[1].base_offset <= offset
                    and found[1].max_timestamp == timestamp
                ):
                    return entry
            self.report_damaged(self.indexes.time_index)
        return None

    # --- damaged indexes ---------------------------------------------------------------------

    def report_damaged(self, index: SparseIndex) -> None:
        """Stop using an index that does not match the log, and have it rebuilt."""
        is_new = not self.indexes.are_damaged and self._rebuild_requested_for is not self.indexes
        index.is_damaged = True
        if not is_new:
            return
        if self.on_damaged is not None:
            self.on_damaged()  # it also writes the log line: that must not happen under the lock
            return
        diagnostics.warn("rebuilding index %s: it does not match its segment", index.path)
        self.indexes.clear()
        builder = IndexBuilder(self._records, self.indexes)
        while builder.position < self._records.size:
            builder.run(self._records.size)
        self.indexes.seal()

    def _request_rebuild(self) -> None:
        """Have the indexes rebuilt because the log is damaged; these stay in use until then."""
        if (
            self.on_damaged is not None
            and self._rebuild_requested_for is not self.indexes
            and not self.indexes.are_damaged
        ):
            self._rebuild_requested_for = self.indexes
            self.on_damaged()

    def _check_distance(self, walked: int) -> None:
        """Report the offset index as damaged if a walk was too long for it to be complete.

        Raises:
            KafkaStorageError: entries are missing; the index will be rebuilt.
        """
        if self.on_damaged is None:
            return
        if not self.indexes.offset_index.is_damaged and (
            walked <= self.indexes.interval_bytes or self.indexes.are_rebuilt
        ):
            return
        self.report_damaged(self.indexes.offset_index)
        raise self._not_indexed_yet()

    def _not_indexed_yet(self) -> KafkaStorageError:
        return KafkaStorageError(
            f"{self._records.path} cannot be searched until its index is rebuilt; try again"
        )
