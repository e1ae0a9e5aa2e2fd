"""Rebuilds the sparse indexes of a segment while the segment is served.

A read that finds a damaged index requests this. The batch headers are read without the lock, into
new files named `.rebuilt`; once these are complete and synced they replace the old ones, under the
lock. Background thread; it yields often so that other work can run.
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
# At most this much of what was appended meanwhile is read under the lock.
_CAUGHT_UP_BYTES: Final = 1 << 20


def reindex(log: PartitionLog, segment: Segment) -> Work:
    """Rebuild both indexes, unless the segment is removed meanwhile.

    Raises:
        KafkaStorageError, OSError: the disk refused; the old indexes stay in use.
    """
    indexes = segment.new_indexes(REBUILT_SUFFIX)
    made = (indexes.offset_index.path, indexes.time_index.path)
    builder = IndexBuilder(segment.records, indexes)

    def finish(segments: SegmentList) -> bool:
        """Add the latest batches and switch to the new indexes; False if there are too many."""
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
    except Exception:  # not GeneratorExit: a killed broker leaves its files as they are
        _remove(made)
        raise
    _remove(made)  # unless they were renamed into place


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
