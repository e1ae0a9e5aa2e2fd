"""Lists the files in a partition's directory: segments, snapshots, leftovers. No state."""

import os
from typing import NamedTuple

from broker_stub.log.files.file_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
    scan,
)
from broker_stub.log.index.sparse_index import OffsetIndex, TimeIndex
from broker_stub.log.index.transaction_index import TransactionIndex


class SegmentFiles(NamedTuple):
    """The sizes of one segment's files; None for a missing index."""

    base_offset: int
    size: int
    index_bytes: int | None
    time_index_bytes: int | None
    transaction_index_bytes: int
    """0 also if the file is missing: then no transaction was aborted in the segment."""

    def has_whole_indexes(self) -> bool:
        """Whether the index files exist and end at an entry boundary."""
        return (
            self.index_bytes is not None
            and self.time_index_bytes is not None
            and self.index_bytes % OffsetIndex.ENTRY.size == 0
            and self.time_index_bytes % TimeIndex.ENTRY.size == 0
            and self.transaction_index_bytes % TransactionIndex.ENTRY.size == 0
        )


class FolderFiles(NamedTuple):
    """The files of one partition."""

    segments: list[SegmentFiles]
    """Sorted by base offset."""
    snapshots: list[int]
    """Offsets of the producer snapshots, ascending."""
    leftovers: list[str]
    """Files to remove: deleted or unfinished ones, and indexes without a log."""


def list_files(folder: str) -> FolderFiles:
    """Scan a partition's directory."""
    sizes: dict[tuple[int, str], int] = {}
    leftovers = []
    for found in scan(folder):
        if found.ending:
            leftovers.append(found.path)
        else:
            sizes[found.offset, found.suffix] = os.stat(found.path).st_size
    bases = sorted(base for base, suffix in sizes if suffix == LOG_SUFFIX)
    leftovers += [
        os.path.join(folder, file_name(base, suffix))
        for base, suffix in sizes
        if suffix in SEGMENT_SUFFIXES and (base, LOG_SUFFIX) not in sizes
    ]
    segments = [
        SegmentFiles(
            base,
            sizes[base, LOG_SUFFIX],
            sizes.get((base, INDEX_SUFFIX)),
            sizes.get((base, TIME_INDEX_SUFFIX)),
            sizes.get((base, TRANSACTION_INDEX_SUFFIX), 0),
        )
        for base in bases
    ]
    snapshots = sorted(offset for offset, suffix in sizes if suffix == SNAPSHOT_SUFFIX)
    return FolderFiles(segments, snapshots, leftovers)
