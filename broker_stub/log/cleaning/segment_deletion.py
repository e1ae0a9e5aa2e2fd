"""Takes segments out of use: their files are renamed `.deleted` now and removed later.

Retention and compaction call it, on the background thread, under the lock of the log.
"""

import contextlib
import os

from broker_stub.log.files.file_names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, file_name, scan
from broker_stub.log.segment import Segment
from broker_stub.log.segment_list import SegmentList


def rename_deleted(segment: Segment, *, with_snapshot: bool = True) -> list[str]:
    """Rename a segment's files, and its snapshot, to `.deleted`; returns the new paths."""
    renamed = segment.rename(DELETED_SUFFIX)
    snapshot = os.path.join(segment.folder, file_name(segment.base_offset, SNAPSHOT_SUFFIX))
    if with_snapshot:
        with contextlib.suppress(FileNotFoundError):
            os.rename(snapshot, snapshot + DELETED_SUFFIX)
            renamed.append(snapshot + DELETED_SUFFIX)
    return renamed


def retire_oldest(segments: SegmentList, count: int) -> list[str]:
    """Rename the files of the `count` oldest segments and drop these from the list, one by one.

    A segment whose `.log` file keeps its name stays in the list, since a restart would find it
    too. Returns the paths of the renamed files.

    Raises:
        OSError: not even the first segment could be renamed.
    """
    renamed: list[str] = []
    for _ in range(count):
        oldest = segments.all()[0]
        log_path = oldest.log_path
        try:
            renamed += rename_deleted(oldest)
        except OSError:
            if not os.path.exists(log_path):  # indexes without a log are not a segment
                segments.remove_oldest(1)
                left = (one for one in scan(oldest.folder) if one.offset == oldest.base_offset)
                renamed += [one.path for one in left]
            if not renamed:
                raise
            break
        segments.remove_oldest(1)
    return renamed
