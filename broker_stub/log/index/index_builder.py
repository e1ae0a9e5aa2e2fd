"""Adds the batches of a segment to its sparse indexes, and skips damaged ones.

Used by the thread that builds the indexes: the background thread, or the one that opens the log.
"""

from itertools import islice

from broker_stub import diagnostics
from broker_stub.log.batch.append_info import BatchPlace
from broker_stub.log.batch.batch_checker import BatchChecker
from broker_stub.log.file_records import FileRecords
from broker_stub.log.index.segment_indexes import SegmentIndexes
from broker_stub.log.log_config import INT32_MAX
from pyclient.errors import CorruptRecordError


class IndexBuilder:
    """Builds the indexes of one segment, in as many steps as the caller wants.

    Attributes:
        position: the position of the next batch.
    """

    __slots__ = (
        "_indexes",
        "_last_at",
        "_last_expected",
        "_next_offset",
        "_offset_max",
        "_records",
        "position",
    )

    def __init__(self, records: FileRecords, indexes: SegmentIndexes) -> None:
        """Start at the first batch; `indexes` are empty."""
        self.position = 0
        self._records = records
        self._indexes = indexes
        self._next_offset = records.base_offset
        self._offset_max = records.base_offset + INT32_MAX
        # The position of the batch before, and the offset that it should have had.
        self._last_at = 0
        self._last_expected = records.base_offset

    def run(self, end: int, batches_max: int | None = None) -> None:
        """Index batches up to `end`, at most `batches_max`; stops after skipping damaged bytes.

        Raises:
            KafkaStorageError: the file cannot be read.
        """
        try:
            for at, header in islice(self._records.walk(self.position, end), batches_max):
                if not (
                    self._next_offset
                    <= header.base_offset
                    <= header.last_offset
                    <= self._offset_max
                ):
                    raise CorruptRecordError("batch offsets out of range", position=at)
                self._indexes.note_batch(at, BatchPlace.of(header))
                self._last_at, self._last_expected = at, self._next_offset
                self.position, self._next_offset = at + header.size, header.last_offset + 1
        except CorruptRecordError as error:
            self._skip_damage(end)
            diagnostics.warn(
                "%s is damaged; indexing continues at byte %d: %s",
                self._records.path,
                self.position,
                error,
            )

    def _skip_damage(self, end: int) -> None:
        """Continue at the next whole batch, or at `end` if there is none."""
        batches = BatchChecker(self._records.file(), end, self._offset_max)
        if batches.batch_at(self._last_at, self._last_expected) is None:
            # The batch before had a wrong length or offset: search right behind its start.
            self.position, self._next_offset = self._last_at, self._last_expected
        behind = batches.batch_behind(self.position, self._next_offset)
        self.position = end if behind is None else behind
        self._last_at, self._last_expected = self.position, self._next_offset
        self._indexes.index_next()
