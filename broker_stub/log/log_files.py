"""The files in a partition's folder, by Kafka's names. No state."""

import os
import re
from typing import Final, NamedTuple

from broker_stub.log.indexes import OffsetIndex, TimeIndex
from broker_stub.log.producer_snapshot import SNAPSHOT_SUFFIX
from broker_stub.log.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from broker_stub.log.transaction_index import TransactionIndex
from pyclient.errors import KafkaStorageError

CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

_NAME: Final = re.compile(r"([0-9]{20})(\.[a-z]+)(\.(?:deleted|cleaned|swap))?")


class SegmentFiles(NamedTuple):
    """The sizes of one segment's files; None for an index that is missing."""

    base_offset: int
    size: int
    index_bytes: int | None
    time_index_bytes: int | None
    transaction_index_bytes: int
    """0 as well where there is none, for then nothing was aborted."""

    def has_whole_indexes(self) -> bool:
        """Whether the indexes are there, and end with an entry."""
        return (
            self.index_bytes is not None
            and self.time_index_bytes is not None
            and self.index_bytes % OffsetIndex.ENTRY.size == 0
            and self.time_index_bytes % TimeIndex.ENTRY.size == 0
            and self.transaction_index_bytes % TransactionIndex.ENTRY.size == 0
        )


class FolderFiles(NamedTuple):
    """What a partition's folder holds."""

    segments: list[SegmentFiles]
    """By base offset."""
    snapshots: list[int]
    """The offsets of producer snapshots, ascending."""
    leftovers: list[str]
    """Paths of files that nothing needs: deleted ones, unfinished ones, indexes without a log."""


def list_files(folder: str) -> FolderFiles:
    """Look through a folder.

    Raises:
        KafkaStorageError: a compaction of Apache Kafka was interrupted in it.
    """
    sizes: dict[tuple[int, str], int] = {}
    leftovers = []
    with os.scandir(folder) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match is None:
                continue
            digits, suffix, transient = match.groups()
            if transient == SWAP_SUFFIX:
                raise KafkaStorageError(
                    f"{entry.path}: a compaction was interrupted here. Start the broker that"
                    " wrote this folder once more, so that it finishes"
                )
            if transient in (DELETED_SUFFIX, CLEANED_SUFFIX):
                leftovers.append(entry.path)
            else:
                sizes[int(digits), suffix] = entry.stat().st_size
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
