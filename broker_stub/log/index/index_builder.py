"""Noting the batches of a segment in its sparse indexes, past what is damaged.

Touched by whoever makes the indexes: the background thread, or a start.
"""

from itertools import islice
from typing import TYPE_CHECKING

from broker_stub import diagnostics
from broker_stub.log.batch.append_info import BatchPlace
from broker_stub.log.batch.batch_checker import BatchChecker
from broker_stub.log.index.segment_indexes import SegmentIndexes
from broker_stub.log.log_config import INT32_MAX
from pyclient.errors import CorruptRecordError

if TYPE_CHECKING:
    from broker_stub.log.segment_reader import SegmentReader


class Noting:
    """How far the indexes have come.

    Attributes:
        position: where the next batch is.
    """

    __slots__ = (
        "_indexes",
        "_last_at",
        "_last_expected",
        "_next_offset",
        "_offset_max",
        "_segment",
        "position",
    )

    def __init__(self, segment: "SegmentReader", indexes: SegmentIndexes) -> None:
        """From the segment's begin on, in indexes that are empty."""
        self.position = 0
        self._segment = segment
        self._indexes = indexes
        self._next_offset = segment.base_offset
        self._offset_max = segment.base_offset + INT32_MAX
        # The batch before, and the offset that it should have had.
        self._last_at = 0
        self._last_expected = segment.base_offset

    def run(self, end: int, batches_max: int | None = None) -> None:
        """Note so many batches, or those before `end`, or before damage; and pass over that.

        Raises:
            KafkaStorageError: the file cannot be read.
        """
        try:
            for at, header in islice(self._segment.walk(self.position, end), batches_max):
                if not (
                    self._next_offset
                    <= header.base_offset
                    <= header.last_offset
                    <= self._offset_max
                ):
                    raise CorruptRecordError("the offsets of a batch can't be", position=at)
                self._indexes.note_batch(at, BatchPlace.of(header))
                self._last_at, self._last_expected = at, self._next_offset
                self.position, self._next_offset = at + header.size, header.last_offset + 1
        except CorruptRecordError as error:
            self._pass_over_damage(end)
            diagnostics.warn(
                "%s is damaged, and indexed from byte %d on: %s",
                self._segment.log_path,
                self.position,
                error,
            )

    def _pass_over_damage(self, end: int) -> None:
        """Go on with the next whole batch; without one, with what may come after `end`."""
        batches = BatchChecker(self._segment.file(), end, self._offset_max)
        if batches.batch_at(self._last_at, self._last_expected) is None:
            # It may have told a wrong length, or offset: then more lies right behind it.
            self.position, self._next_offset = self._last_at, self._last_expected
        behind = batches.batch_behind(self.position, self._next_offset)
        self.position = end if behind is None else behind
        self._last_at, self._last_expected = self.position, self._next_offset
        self._indexes.index_next()
