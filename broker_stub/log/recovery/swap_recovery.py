"""What a crash left of compactions: finished if the new files counted already, else undone.

By Kafka's rules, so that its folders can be gone on with: `.cleaned` files are incomplete, and so
are `.swap` files of the same segment or later ones beside them; other `.swap` files take the
place of all segments from their first offset to their last. Used while a log opens.
"""

import os
from collections.abc import Sequence

from broker_stub import diagnostics
from broker_stub.log.batch.batch_checker import BatchChecker
from broker_stub.log.files.file_names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    FoundFile,
    scan,
)
from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.log_config import INT64_MAX, LogConfig
from broker_stub.log.segment import Segment
from pyclient.errors import KafkaStorageError


def finish_swaps(folder: str, files: OpenFiles, config: LogConfig) -> None:
    """Leave neither `.cleaned` nor `.swap` files in a folder.

    Raises:
        KafkaStorageError: a segment that counts cannot be read.
    """
    found = list(scan(folder))
    cleaned = [file for file in found if file.ending == CLEANED_SUFFIX]
    swaps = [file for file in found if file.ending == SWAP_SUFFIX]
    if not cleaned and not swaps:
        return
    incomplete_from = min((file.offset for file in cleaned), default=INT64_MAX)
    for file in (*cleaned, *(file for file in swaps if file.offset >= incomplete_from)):
        os.unlink(file.path)
    complete = [file for file in swaps if file.offset < incomplete_from]
    for file in complete:
        if file.suffix == LOG_SUFFIX:
            diagnostics.warn("%s: a compaction was interrupted, and is finished", file.path)
            _remove_replaced(file, found, files, config)
    # What is removed must not come back beside what replaces it.
    files.sync(folder)
    for file in complete:
        os.rename(file.path, file.path.removesuffix(SWAP_SUFFIX))
    files.sync(folder)


def _remove_replaced(
    swap: FoundFile, found: Sequence[FoundFile], files: OpenFiles, config: LogConfig
) -> None:
    size = os.stat(swap.path).st_size
    folder = os.path.dirname(swap.path)
    segment = Segment(folder, swap.offset, files, config, size=size, ending=SWAP_SUFFIX)
    batches = BatchChecker(segment.records.file(), size)
    position, next_offset = 0, swap.offset
    while position < size:
        header = batches.batch_at(position, next_offset)
        if header is None:
            raise KafkaStorageError(f"{swap.path} is damaged at byte {position}")
        position += header.size
        next_offset = header.last_offset + 1
    segment.close()
    for file in found:
        if (
            not file.ending
            and file.suffix in SEGMENT_SUFFIXES
            and swap.offset <= file.offset < max(next_offset, swap.offset + 1)
        ):
            os.unlink(file.path)
