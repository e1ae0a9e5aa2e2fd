"""Reading a segment: walks over its batches, and finds them by offset, position or time.

The sparse indexes say where a walk begins; what they say is believed only if the batch that they
lead to agrees. An index that does not fit is reported, and then reads go without it: within a
bound, for they run on the serving thread, and asking again is better than a long silence. Guarded
by the lock of its log.
"""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, Final

from broker_stub import diagnostics
from broker_stub.log.batch.append_info import BatchPlace
from broker_stub.log.batch.header import MAGIC, NO_TIMESTAMP, BatchHeader, read_header
from broker_stub.log.files.file_slice import read_exactly
from broker_stub.log.files.open_files import OpenFile, OpenFiles
from broker_stub.log.index.index_builder import Noting
from broker_stub.log.index.index_file import DamagedIndexError
from broker_stub.log.index.segment_indexes import SegmentIndexes
from broker_stub.log.index.sparse_index import Entry, OffsetIndex, SparseIndex, TimeIndex
from pyclient.errors import CorruptRecordError, KafkaStorageError
from pyclient.records.batch import HEADER_SIZE

# A walk reads this much at a time: about what lies between two index entries.
_WALK_BYTES: Final = 8192
# So many headers are read at most where an index should have led further.
_SCANNED_BATCHES_MAX: Final = 4096


class SegmentReader:
    """What a segment's readers need. The file is opened when it is needed.

    Attributes:
        base_offset: the offset that its names say.
        log_path: where the records are.
        size: how many bytes of them count.
        on_damaged: told when a sparse index turns out not to fit, to have it made anew elsewhere;
            until then reads do without it. While it is None, as at a start, it is made anew at
            once.
    """

    __slots__ = (
        "_files",
        "_first_timestamp",
        "_indexes",
        "_renewed",
        "base_offset",
        "log_path",
        "on_damaged",
        "size",
    )

    def __init__(
        self, log_path: str, base_offset: int, size: int, files: OpenFiles, indexes: SegmentIndexes
    ) -> None:
        self.log_path = log_path
        self.base_offset = base_offset
        self.size = size
        self.on_damaged: Callable[[Any], None] | None = None
        self._files = files
        self._indexes = indexes
        self._first_timestamp: int | None = None
        self._renewed: SegmentIndexes | None = None  # those that others were asked for

    @property
    def offset_index(self) -> OffsetIndex:
        """From offsets to places."""
        return self._indexes.offset_index

    @property
    def time_index(self) -> TimeIndex:
        """From times to offsets."""
        return self._indexes.time_index

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """The latest timestamp, and the last offset of the first batch that has it.

        Raises:
            KafkaStorageError: it is not known until an index is made anew; ask again.
        """
        known = self._indexes.max_timestamp
        return self._read_max_timestamp() if known is None else known

    def _read_max_timestamp(self) -> Entry:
        # The time index ends with it, since the segment was sealed or closed in order.
        latest = self._checked_time(self.time_index.last)
        if latest is not None and latest[0] == NO_TIMESTAMP and self.first_timestamp >= 0:
            self.report_damaged(self.time_index)
        elif latest is not None:
            self._indexes.max_timestamp = latest
        if self._indexes.max_timestamp is None:
            raise self._not_indexed_yet()
        return self._indexes.max_timestamp

    @property
    def first_timestamp(self) -> int:
        """The time of the first batch; -1 where it has none, is damaged, or there is no batch."""
        if self._first_timestamp is None and self.size:
            try:
                self._first_timestamp = self.read_first_timestamp()
            except CorruptRecordError:
                self._first_timestamp = NO_TIMESTAMP
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    def read_first_timestamp(self) -> int:
        """The time of the first batch, from the file; -1 where it has none, or there is no batch.

        Raises:
            CorruptRecordError: it is damaged.
        """
        first = next(self.walk(0), None)
        return NO_TIMESTAMP if first is None else first[1].max_timestamp

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
            size = header.size
            if not HEADER_SIZE <= size <= self.size - position or header.magic != MAGIC:
                raise CorruptRecordError(
                    f"{self.log_path} has no batch at byte {position}", position=position
                )
            yield position, header
            position += size

    def walk_over_damage(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """As `walk`, but goes on behind damaged bytes, with the next batch that is indexed.

        For a start: nobody else has to have the index meanwhile.

        Raises:
            CorruptRecordError: none is.
            KafkaStorageError: the file, or the index, cannot be read.
        """
        while position < self.size:
            indexed = self.offset_index.position_after(position)
            end = self.size if indexed is None else indexed
            entry = None if indexed is None else self.offset_index.lookup_position(indexed)
            try:
                for at, header in self.walk(position, end):
                    if at + header.size > end:
                        raise CorruptRecordError("a batch ends inside another", position=at)
                    if entry and header.last_offset >= entry[0] and self._batch_of(entry):
                        raise CorruptRecordError("a batch is too far ahead", position=at)
                    yield at, header
            except CorruptRecordError as error:
                if indexed is None:
                    raise
                diagnostics.warn("%s is passed over up to byte %d: %s", self.log_path, end, error)
            position = end

    def find(self, offset: int) -> tuple[int, BatchHeader] | None:
        """The first batch that ends at or after `offset`, with its position.

        Raises:
            CorruptRecordError: there is damage on the way, or where the offset was.
            KafkaStorageError: the way there is too long until the index is made anew; ask again.
        """
        try:
            found = self._find(offset)
            if found is not None and found[1].base_offset > offset:
                self._check_ahead(offset, found)
        except CorruptRecordError:
            # The batch that follows damaged bytes is indexed: see `index_next`.
            found = self._batch_of(self._next_entry(offset))
            if found is None or found[1].base_offset > offset:
                if not self._indexes.are_rebuilt:
                    self._ask_for_others()  # which have it
                raise
        return found

    def _check_ahead(self, offset: int, found: tuple[int, BatchHeader]) -> None:
        """Where `offset` seems to be in a hole: does the next batch that is indexed say so too?

        Raises:
            CorruptRecordError: it is the base offset of the batch that is damaged.
        """
        position, header = found
        entry = self._next_entry(offset)
        if entry is not None and position < entry[1] and entry[0] <= header.last_offset:
            raise CorruptRecordError(
                f"{self.log_path} has a batch at byte {position} with an offset too far ahead",
                position=position,
            )

    def _next_entry(self, offset: int) -> Entry | None:
        """The first entry at or after `offset`."""
        try:
            return None if self.offset_index.is_damaged else self.offset_index.lookup_after(offset)
        except DamagedIndexError:
            return None

    def _batch_of(self, entry: Entry | None) -> tuple[int, BatchHeader] | None:
        """The batch that an entry leads to, if it is whole enough to say so too."""
        if entry is None or entry[1] < 0:
            return None
        try:
            found = next(self.walk(entry[1]), None)
        except CorruptRecordError:
            return None
        return found if found is not None and found[1].last_offset == entry[0] else None

    def _find(self, offset: int) -> tuple[int, BatchHeader] | None:
        walk = self._walk_by_index(lambda: self.offset_index.lookup(offset))
        start = 0
        for count, (position, header) in enumerate(walk):
            if header.last_offset >= offset:
                return position, header
            if count == 0:
                start = position
            elif count >= _SCANNED_BATCHES_MAX:
                self._check_way(position - start)
        return None

    def whole_batches(self, start: int, max_bytes: int, limit: int) -> tuple[int, int]:
        """Where the last batch ends that fits `max_bytes` from `start` on; one at least.

        `start` is where a batch starts, `limit` where one ends, no nearer than `max_bytes`.
        Also tells the offset after the batches.

        Raises:
            CorruptRecordError: the first one is damaged; a later one only ends them.
        """
        end, next_offset = start, -1
        walk = self._walk_by_index(
            lambda: self.offset_index.lookup_position(start + max_bytes), start
        )
        try:
            for position, header in islice(walk, _SCANNED_BATCHES_MAX):
                if position > end:  # the index leads past batches that fit
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
        """Where a batch starts, not far before `position` if the index is of use."""
        walk = self._walk_by_index(lambda: self.offset_index.lookup_position(position))
        return next(walk, (self.size, None))[0]

    def walk_since(self, timestamp_ms: int, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Batches from `offset` on, but for some that are older than `timestamp_ms`.

        Raises:
            KafkaStorageError: the way is too long until the index is made anew; ask again.
        """
        entry = self._checked_time(lambda: self.time_index.lookup(timestamp_ms))
        found = self.find(offset if entry is None else max(entry[1], offset))
        for count, batch in enumerate(self.walk(found[0] if found else self.size)):
            if entry is None and count == _SCANNED_BATCHES_MAX and self.on_damaged is not None:
                raise self._not_indexed_yet()
            yield batch

    def _walk_by_index(
        self, lookup: Callable[[], Entry | None], start: int = 0
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Walk from the batch that the offset index gives, if that is after `start`; else there."""
        if not self.offset_index.is_damaged:
            try:
                entry = lookup()
                if entry is None or 0 < entry[1] <= start:
                    return self.walk(start)
                walk = self.walk(entry[1]) if entry[1] >= 0 else iter(())
                try:
                    first = next(walk, None)
                except CorruptRecordError:
                    before = self._entry_before_damage(entry)
                    if before is not None:
                        self._ask_for_others()
                        return self.walk(max(before, start))
                    first = None
                if first is not None and first[1].last_offset == entry[0]:
                    return chain((first,), walk) if entry[1] > start else self.walk(start)
            except DamagedIndexError:
                pass  # no file
            self.report_damaged(self.offset_index)
        return self.walk(start)

    def _entry_before_damage(self, entry: Entry) -> int | None:
        """Where to walk from when there is no batch where an entry says, but may have been one.

        None if no other entry beside it fits: then it is the index that is damaged.

        Raises:
            DamagedIndexError: the index has gone.
        """
        before = self.offset_index.lookup_position(entry[1] - 1)
        if before is not None and before[0] < entry[0] and self._batch_of(before) is not None:
            return before[1]
        return None if self._batch_of(self._next_entry(entry[0] + 1)) is None else 0

    def _checked_time(self, lookup: Callable[[], Entry]) -> Entry | None:
        """What the time index says, if there is a batch that says so too; else it is damaged."""
        if not self.time_index.is_damaged:
            try:
                timestamp, offset = entry = lookup()
            except DamagedIndexError:
                pass
            else:
                if timestamp == NO_TIMESTAMP:
                    return NO_TIMESTAMP, self.base_offset
                try:
                    found = self.find(offset)
                except CorruptRecordError:
                    return entry  # nobody can tell; appends need no more than that
                if (
                    found is not None
                    and found[1].base_offset <= offset
                    and found[1].max_timestamp == timestamp
                ):
                    return entry
            self.report_damaged(self.time_index)
        return None

    def read_next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry on.

        Raises:
            CorruptRecordError: the segment does not end where a batch ends.
        """
        next_offset, end = self.base_offset, 0
        for position, header in self._walk_by_index(self.offset_index.last):
            next_offset, end = header.last_offset + 1, position + header.size
        if end != self.size:
            raise CorruptRecordError("the segment ends inside a batch", position=self.size)
        return next_offset

    # Damaged indexes

    def report_damaged(self, index: SparseIndex) -> None:
        """Do without an index that does not fit, and have it made anew."""
        is_news = not self._indexes.are_damaged and self._renewed is not self._indexes
        index.is_damaged = True
        if not is_news:
            return
        if self.on_damaged is not None:
            self.on_damaged(self)  # and told there: a line may take long, under a lock
            return
        diagnostics.warn("%s does not fit its segment; it is made anew", index.path)
        self.clear_indexes()
        noting = Noting(self, self._indexes)
        while noting.position < self.size:
            noting.run(self.size)
        self._indexes.seal()

    def _ask_for_others(self) -> None:
        """Have the indexes made anew, for there is damage; until then these serve."""
        if (
            self.on_damaged is not None
            and self._renewed is not self._indexes
            and not self._indexes.are_damaged
        ):
            self._renewed = self._indexes
            self.on_damaged(self)

    def _check_way(self, walked: int) -> None:
        """After many batches that only lie on the way: was there no index entry to skip them by?

        Raises:
            KafkaStorageError: none of those there should be; they will come.
        """
        if self.on_damaged is None:
            return
        if not self.offset_index.is_damaged and (
            walked <= self._indexes.interval_bytes or self._indexes.are_rebuilt
        ):
            return
        self.report_damaged(self.offset_index)
        raise self._not_indexed_yet()

    def _not_indexed_yet(self) -> KafkaStorageError:
        return KafkaStorageError(f"{self.log_path} can't be searched until its index is made anew")

    def note_batches(self) -> None:
        """Index all batches anew.

        Raises:
            CorruptRecordError: a header says what cannot be; what is before it is indexed.
        """
        self.clear_indexes()
        for position, header in self.walk(0):
            self.note_batch(position, header)

    def index_next(self) -> None:
        """Have the next batch that is noted indexed: what lies before it is damaged."""
        self._indexes.index_next()

    def note_batch(self, position: int, header: BatchHeader) -> None:
        """Index a batch that is there already."""
        self._indexes.note_batch(position, BatchPlace.of(header))

    def clear_indexes(self) -> None:
        """Forget what the two sparse indexes say, before they are noted anew."""
        self._indexes.clear()
        self._first_timestamp = None
