"""Finishes or undoes the compactions that a crash interrupted.

Kafka's rules, so that the broker can open its directories: `.cleaned` files are incomplete, and so
are `.swap` files with the same or a higher base offset. Other `.swap` files replace all segments
from their first offset to their last. Runs while a log is opened.
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
    """Remove or rename all `.cleaned` and `.swap` files of a partition.

    Raises:
        KafkaStorageError: a complete `.swap` segment is damaged.
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
            diagnostics.warn("%s: finishing an interrupted compaction", file.path)
            _remove_replaced(file, found, files, config)
    # Synced first: after a crash, a removed segment must not reappear beside its replacement.
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
