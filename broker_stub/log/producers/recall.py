"""Reads the batches that a snapshot does not have, from the log's tail.

A snapshot has only the last of a producer's five batches. The first retry that needs the others
requests this once after a start, for all producers together. Background thread; it reads the
headers without the lock, and yields often so that other work can run.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from broker_stub import diagnostics
from broker_stub.log.batch.header import BatchHeader
from broker_stub.log.cleaning.compaction import Work
from broker_stub.log.index.index_file import DamagedIndexError
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.producers.producer_state import (
    BATCHES_REMEMBERED,
    ProducerEntry,
    ProducerState,
    RememberedBatch,
)
from broker_stub.log.segment import Segment
from broker_stub.log.segment_list import SegmentList
from pyclient.errors import CorruptRecordError

# A retry comes soon after its batch, so that one is near the log end.
_TAIL_BYTES: Final = 16 << 20
_BATCHES_BETWEEN_PAUSES: Final = 1024


def recall(log: PartitionLog) -> Work:
    """Add the batches in the log's tail to the state of its producers.

    Raises:
        KafkaStorageError: the disk refused; the next retry requests this again.
    """
    try:
        begun = log.while_open(partial(_begin, log.producer_state))
        if begun is None:
            return
        older, tail = begun
        for segment, position in tail:
            yield from _note(log, segment, position, older)
        log.recall_producers(older.found)
    finally:
        log.producer_state.is_recalling = False


def _begin(
    producers: ProducerState, segments: SegmentList
) -> tuple["_OlderBatches", list[tuple[Segment, int]]]:
    """What to look for, and the segments of the tail, oldest first, with start positions."""
    tail: list[tuple[Segment, int]] = []
    left = _TAIL_BYTES
    for segment in reversed(segments.all()):
        if left <= 0:
            break
        tail.append((segment, _start_in(segment, segment.size - left)))
        left -= segment.size
    return _OlderBatches(producers), tail[::-1]


def _start_in(segment: Segment, position: int) -> int:
    """The start of the batch around a position, or of the next indexed one behind damage."""
    if position <= 0:
        return 0
    try:
        return segment.search.batch_around(position)
    except CorruptRecordError:
        behind = _indexed_behind(segment, position)
        return segment.size if behind is None else behind


def _note(log: PartitionLog, segment: Segment, position: int, older: "_OlderBatches") -> Work:
    """Add the batches from a position on, skipping damaged ones."""
    while True:
        try:
            for count, (at, header) in enumerate(segment.records.walk(position), 1):
                position = at
                older.note(header)
                if count % _BATCHES_BETWEEN_PAUSES == 0:
                    yield
            return
        except CorruptRecordError as error:
            diagnostics.warn(
                "duplicates from behind a damaged batch may not be detected: %s", error
            )
            behind = log.while_open(partial(_look_behind, segment, position))
            if behind is None:
                return
            position = behind


def _look_behind(segment: Segment, position: int, _segments: SegmentList) -> int | None:
    return _indexed_behind(segment, position)


def _indexed_behind(segment: Segment, position: int) -> int | None:
    try:
        return segment.offset_index.position_after(position)
    except DamagedIndexError:
        return None


class _OlderBatches:
    """Collects the older batches of producers whose state came from a snapshot.

    Attributes:
        found: the batches before the known ones, oldest first, by producer id.
    """

    def __init__(self, producers: Iterable[ProducerEntry]) -> None:
        # The epoch, and the first offset of the known batches.
        self._wanted = {
            entry.producer_id: (entry.epoch, entry.batches[0].first_offset)
            for entry in producers
            if entry.batches and not entry.tail_is_known
        }
        self.found: Mapping[int, deque[RememberedBatch]] = defaultdict(
            lambda: deque(maxlen=BATCHES_REMEMBERED - 1)
        )

    def note(self, header: BatchHeader) -> None:
        """Add the batch if it is one of them."""
        wanted = self._wanted.get(header.producer_id)
        if (
            wanted is not None
            and wanted[0] == header.producer_epoch
            and header.last_offset < wanted[1]
            and not header.is_control
        ):
            self.found[header.producer_id].append(RememberedBatch.of(header, header.last_offset))
