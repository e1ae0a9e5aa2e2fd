"""Compacts one log: collects the last offset of every key, then rewrites the segments.

The dirty part is what was never compacted; its keys decide which earlier records stay. Segments
are rewritten in groups that fit into one segment, oldest first, and each group is in place before
the next one starts: at any moment the log holds the last value of every key. Background thread;
the work is a generator that yields often so that other work can run.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final, NamedTuple

from broker_stub.log.batch.append_info import BatchPlace
from broker_stub.log.batch.header import read_header
from broker_stub.log.cleaning.batch_filter import BatchFilter, last_records
from broker_stub.log.cleaning.cleaned_transactions import CleanedTransactions
from broker_stub.log.cleaning.offset_map import OffsetMap
from broker_stub.log.cleaning.segment_swap import swap_in
from broker_stub.log.files.file_names import CLEANED_SUFFIX
from broker_stub.log.files.file_slice import read_exactly
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.index.sparse_index import OffsetIndex, TimeIndex
from broker_stub.log.log_config import INT32_MAX, INT64_MAX
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.segment import Segment
from pyclient.errors import CorruptRecordError, KafkaStorageError
from pyclient.records.batch import RecordBatch, iter_batches
from pyclient.records.header import HEADER_SIZE

_READ_BYTES: Final = 256 << 10  # about the work between two yields
_WRITE_BYTES: Final = 1 << 20

Work = Generator[None, None, None]


class DirtyLog(NamedTuple):
    """A log to compact, and the range of its dirty part."""

    log: PartitionLog
    first_dirty_offset: int
    first_uncleanable_offset: int


class Compaction:
    """One compaction of one log.

    Attributes:
        end_offset: up to where the log is compacted, once `run` is finished. It does not advance
            if retention took a part meanwhile, so that the rest is compacted again.
    """

    def __init__(
        self,
        dirty: DirtyLog,
        files: OpenFiles,
        offsets: OffsetMap,
        now_ms: int,
        on_replaced: Callable[[PartitionLog, list[str]], None],
    ) -> None:
        """`on_replaced` gets the files of replaced segments, to remove them later."""
        self._log, self._dirty_from, self._dirty_to = dirty
        self._files = files
        self._offsets = offsets
        self._now_ms = now_ms
        self._on_replaced = on_replaced
        sealed = self._log.segments
        self._segments = [
            segment for segment in sealed[:-1] if segment.base_offset < self._dirty_to
        ]
        self._next_bases = [segment.base_offset for segment in sealed[1:]]
        self.end_offset = self._dirty_from

    def run(self) -> Work:
        """Compact the log, one step per yield.

        Raises:
            KafkaStorageError, OSError: the disk refused.
            CorruptRecordError: a batch is damaged; nothing before it is lost.
        """
        yield from self._gather_keys()
        end_offset = self._offsets.latest_offset + 1
        producers = self._log.while_open(lambda _segments: last_records(self._log.producer_state))
        if end_offset <= self._dirty_from or producers is None:
            return
        segments = [one for one in self._segments if one.base_offset < end_offset]
        batch_filter = BatchFilter(
            self._offsets,
            CleanedTransactions(self._log.aborted_transactions(0, INT64_MAX)),
            producers,
            now_ms=self._now_ms,
            delete_retention_ms=self._log.config.delete_retention_ms,
        )
        is_whole = True
        for group in self._groups(segments):
            is_last = group[-1] is segments[-1]
            is_whole &= yield from self._compact(group, batch_filter, is_last)
        if is_whole:
            self.end_offset = end_offset

    # --- keys --------------------------------------------------------------------------------

    def _gather_keys(self) -> Work:
        """Collect the last offset of every key in the dirty part, as far as the map has room."""
        transactions = CleanedTransactions(
            self._log.aborted_transactions(self._dirty_from, self._dirty_to)
        )
        for segment, next_base in zip(self._segments, self._next_bases, strict=False):
            if next_base <= self._dirty_from:
                continue
            found = segment.search.find(self._dirty_from)
            for batches in _read(segment, found[0] if found else segment.size):
                for batch in batches:
                    if batch.base_offset >= self._dirty_to:
                        self._reach(batch.base_offset)
                        return
                    if not self._gather(batch, transactions):
                        return
                yield
            self._reach(next_base - 1)

    def _gather(self, batch: RecordBatch, transactions: CleanedTransactions) -> bool:
        if batch.is_control:
            transactions.on_control(batch)
        elif not transactions.on_records(batch):
            for record in batch.decode(from_offset=self._dirty_from):
                if record.key is not None and not self._offsets.put(record.key, record.offset):
                    self._reach(record.offset - 1)
                    return False
        self._reach(batch.last_offset)
        return True

    def _reach(self, offset: int) -> None:
        reached = min(offset, self._dirty_to - 1)
        self._offsets.latest_offset = max(self._offsets.latest_offset, reached)

    # --- segments ----------------------------------------------------------------------------

    def _groups(self, segments: Sequence[Segment]) -> list[list[Segment]]:
        """Adjacent segments that fit into one, even if no record is dropped."""
        config = self._log.config
        groups: list[list[Segment]] = []
        sizes = [0, 0, 0]
        for segment, next_base in zip(segments, self._next_bases, strict=False):
            own = (
                segment.size,
                len(segment.offset_index) * OffsetIndex.ENTRY.size,
                len(segment.time_index) * TimeIndex.ENTRY.size,
            )
            sizes = [before + more for before, more in zip(sizes, own, strict=True)]
            if (
                groups
                and sizes[0] <= config.segment_bytes
                and max(sizes[1:]) <= config.segment_index_bytes
                and next_base - 1 - groups[-1][0].base_offset <= INT32_MAX
            ):
                groups[-1].append(segment)
            else:
                groups.append([segment])
                sizes = list(own)
        return groups

    def _compact(
        self, group: Sequence[Segment], batch_filter: BatchFilter, is_last: bool
    ) -> Generator[None, None, bool]:
        """Rewrite a group and swap in the result.

        Returns whether what is left of the group is compacted: False if retention took a part.
        """
        cleaned = Segment.create(
            self._log.folder,
            group[0].base_offset,
            self._files,
            self._log.config,
            self._now_ms,
            CLEANED_SUFFIX,
        )
        try:
            changed = yield from self._write(group, cleaned, batch_filter, is_last)
            if not changed and len(group) == 1:
                cleaned.remove()
                return True
            cleaned.seal()
            modified_ns = os.stat(group[-1].log_path).st_mtime_ns  # retention may use it
            os.utime(cleaned.log_path, ns=(modified_ns, modified_ns))
            cleaned.sync(with_indexes=True)
        except Exception:  # not GeneratorExit: a killed broker leaves its files as they are
            cleaned.remove()
            raise
        replaced = swap_in(self._log, group, cleaned, self._files)
        self._on_replaced(self._log, replaced or [])
        return replaced is not None or set(group).isdisjoint(self._log.segments)

    def _write(
        self, group: Sequence[Segment], cleaned: Segment, batch_filter: BatchFilter, is_last: bool
    ) -> Generator[None, None, bool]:
        """Write what stays of a group; returns whether any batch changed."""
        changed = False
        pieces: list[bytes | memoryview] = []
        places: list[BatchPlace] = []
        for segment in group:
            position = 0
            for batches in _read(segment, 0):
                for batch in batches:
                    position += batch.size_in_bytes
                    left = batch_filter.apply(
                        batch,
                        cleaned.transaction_index,
                        is_last=is_last and segment is group[-1] and position == segment.size,
                    )
                    changed |= left is not batch.data
                    if left is not None:
                        pieces.append(left)
                        timestamp = RecordBatch(left).max_timestamp
                        places.append(BatchPlace(batch.last_offset, timestamp, len(left)))
                if sum(map(len, pieces)) >= _WRITE_BYTES:
                    cleaned.append(memoryview(b"".join(pieces)), places)
                    pieces, places = [], []
                yield
        if pieces:
            cleaned.append(memoryview(b"".join(pieces)), places)
        return changed


def _read(segment: Segment, position: int) -> Iterator[list[RecordBatch]]:
    """The batches of a segment from a position on, a few per step, with their CRC checked."""
    file = segment.records.file()
    while position < segment.size:
        size = min(_READ_BYTES, segment.size - position)
        batches = list(_checked(read_exactly(file, position, size), segment))
        if not batches:  # the next batch is larger than what was read
            left = segment.size - position
            size = (
                read_header(read_exactly(file, position, HEADER_SIZE)).size
                if left > HEADER_SIZE
                else left
            )
            if not HEADER_SIZE <= size <= left:
                raise CorruptRecordError(f"{segment.log_path} has no batch at byte {position}")
            batches = list(_checked(read_exactly(file, position, size), segment))
        position += sum(batch.size_in_bytes for batch in batches)
        yield batches


def _checked(data: bytes, segment: Segment) -> Iterator[RecordBatch]:
    for batch in iter_batches(data):
        if not isinstance(batch, RecordBatch):
            raise KafkaStorageError(f"{segment.log_path} has a batch of an old message format")
        batch.check_crc()
        yield batch
