"""Putting a compacted segment in the place of those it was made of, so that a crash does no harm.

The new files are complete and synced as `.cleaned`; from the moment that they are named `.swap`
they count, and the old ones don't. Then the old ones are renamed `.deleted`, then the new ones get
their names. The folder is synced between the steps, since file systems may keep a later rename
and lose an earlier one; `swap_recovery` finishes what was begun. Readers have open files, which
no rename takes from them. Background thread; what touches the log's list is under its lock.
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
    """A compacted segment is neither out nor quite in place."""


def swap_in(
    log: PartitionLog, old: Sequence[Segment], cleaned: Segment, files: OpenFiles
) -> list[str] | None:
    """Replace segments of a log; the renamed files of the old ones, to be removed later.

    None, and nothing happens, when the log was closed or has lost some of the old segments
    meanwhile.

    Raises:
        SwapFailedError: the disk refused. What was begun is finished by the next start.
    """
    try:
        return _swap_in(log, old, cleaned, files)
    except OSError as error:
        raise SwapFailedError(f"{cleaned.log_path} can't take its place: {error}") from error


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
        # The producers' state where the new segment starts is what it was.
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
