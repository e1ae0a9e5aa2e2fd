"""Making the sparse indexes of a segment anew while it is served.

A read that finds an index damaged goes on without it and asks for this. The segment's headers are
read without the lock and with pauses, for the background thread has other things to do meanwhile;
the new files have names of their own until they are complete and synced. Then they take the place
of the old ones, under the lock. Background thread.
"""

import contextlib
import os
from collections.abc import Iterable
from typing import Final

from broker_stub import diagnostics
from broker_stub.log.append_info import BatchPlace
from broker_stub.log.compaction import Work
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.segment import REBUILT_SUFFIX, Segment
from broker_stub.log.segment_indexes import SegmentIndexes
from broker_stub.log.segment_list import SegmentList
from pyclient.errors import CorruptRecordError

_BATCHES_BETWEEN_PAUSES: Final = 1024
# What was appended meanwhile is read under the lock, if it is no more than this.
_CAUGHT_UP_BYTES: Final = 1 << 20


def reindex(log: PartitionLog, segment: Segment) -> Work:
    """Make both indexes anew, with pauses. Nothing happens when the segment has gone meanwhile.

    Raises:
        KafkaStorageError, OSError: the disk refused; the segment is served as before.
    """
    indexes = segment.new_indexes(REBUILT_SUFFIX)
    made = (indexes.offset_index.path, indexes.time_index.path)
    noting = _Noting(segment, indexes)
    try:
        while True:
            yield from noting.run()
            indexes.spill()
            indexes.sync()
            if log.while_open(noting.finish) is not False:
                break
    except Exception:  # not when a killed broker drops the work: it leaves what there is
        _remove(made)
        raise
    _remove(made)  # if they have not got other names


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


class _Noting:
    """How far the indexes have come."""

    def __init__(self, segment: Segment, indexes: SegmentIndexes) -> None:
        self._segment = segment
        self._indexes = indexes
        self._position = 0
        self._is_stuck = False

    def run(self) -> Work:
        """Note all batches that there are when this begins."""
        end = self._segment.size
        while self._position < end and not self._is_stuck:
            self._note(_BATCHES_BETWEEN_PAUSES, end)
            yield

    def finish(self, segments: SegmentList) -> bool:
        """Note what came since, and put the indexes in place; not if that would take long."""
        if not segments.has([self._segment]):
            return True
        if self._segment.size - self._position > _CAUGHT_UP_BYTES and not self._is_stuck:
            return False
        self._note(self._segment.size, self._segment.size)
        self._segment.use_indexes(self._indexes, is_sealed=self._segment is not segments.active)
        return True

    def _note(self, batches_max: int, end: int) -> None:
        try:
            for _, (position, header) in zip(
                range(batches_max), self._segment.walk(self._position, end), strict=False
            ):
                self._indexes.note_batch(position, BatchPlace.of(header))
                self._position = position + header.size
        except CorruptRecordError as error:
            # What is before it can be found again; who reads on is told as much.
            diagnostics.warn(
                "%s is indexed up to a damaged batch: %s", self._segment.log_path, error
            )
            self._is_stuck = True
