"""Replaces segments by the compacted one made from them, safely in a crash.

The new files are complete and synced as `.cleaned`. Renaming them to `.swap` makes them valid
instead of the old ones. Then the old ones are renamed `.deleted`, and the new ones get their final
names. The directory is synced between the steps, since a file system may keep a later rename and
lose an earlier one; `recovery/swap_recovery` finishes an interrupted swap. Readers keep their open
files. Background thread; the list of segments changes under the lock of the log.
"""

from collections.abc import Sequence

from broker_stub.log.cleaning.segment_deletion import rename_deleted
from broker_stub.log.files.file_names import SWAP_SUFFIX
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.segment import Segment
from broker_stub.log.segment_list import SegmentList
from pyclient.errors import KafkaError


class SwapFailedError(KafkaError):
    """Replacing segments by a compacted one failed halfway."""


def swap_in(
    log: PartitionLog, old: Sequence[Segment], cleaned: Segment, files: OpenFiles
) -> list[str] | None:
    """Replace segments of a log; returns the renamed files of the old ones, to be removed later.

    Returns None and does nothing if the log was closed or lost some of the old segments meanwhile.

    Raises:
        SwapFailedError: the disk refused. The next start finishes the swap.
    """
    try:
        return _swap_in(log, old, cleaned, files)
    except OSError as error:
        raise SwapFailedError(f"cannot swap in {cleaned.log_path}: {error}") from error


def _swap_in(
    log: PartitionLog, old: Sequence[Segment], cleaned: Segment, files: OpenFiles
) -> list[str] | None:

    def take_over(segments: SegmentList) -> bool:
        if not segments.has(old):
            return False
        cleaned.rename(SWAP_SUFFIX)
        segments.replace(old, cleaned)
        return True

    def retire(_segments: SegmentList) -> list[str]:
        # The new segment needs the snapshot at its base offset.
        return [
            path
            for segment in old
            for path in rename_deleted(
                segment, with_snapshot=segment.base_offset != cleaned.base_offset
            )
        ]

    files.sync(log.folder)
    if not log.while_open(take_over):
        cleaned.remove()
        return None
    files.sync(log.folder)
    retired = log.while_open(retire)
    if retired is None:
        return None
    files.sync(log.folder)
    log.while_open(lambda _segments: cleaned.rename(""))
    files.sync(log.folder)
    return retired
