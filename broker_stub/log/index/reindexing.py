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

from broker_stub.log.cleaning.compaction import Work
from broker_stub.log.files.file_names import REBUILT_SUFFIX
from broker_stub.log.index.index_builder import IndexBuilder
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.segment import Segment
from broker_stub.log.segment_list import SegmentList

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
    builder = IndexBuilder(segment.records, indexes)

    def finish(segments: SegmentList) -> bool:
        """Note what came since, and put the indexes in place; not if that would take long."""
        if not segments.has([segment]):
            return True
        if segment.size - builder.position > _CAUGHT_UP_BYTES:
            return False
        while builder.position < segment.size:
            builder.run(segment.size)
        segment.use_indexes(indexes, is_sealed=segment is not segments.active)
        return True

    try:
        while True:
            end = segment.size
            while builder.position < end:
                builder.run(end, _BATCHES_BETWEEN_PAUSES)
                yield
            indexes.spill()
            indexes.sync()
            if log.while_open(finish) is not False:
                break
    except Exception:  # not when a killed broker drops the work: it leaves what there is
        _remove(made)
        raise
    _remove(made)  # if they have not got other names


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
