"""The files in a partition's folder, by Kafka's names. No state."""

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from broker_stub.log.index.segment_indexes import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from broker_stub.log.index.sparse_index import OffsetIndex, TimeIndex
from broker_stub.log.index.transaction_index import TransactionIndex
from broker_stub.log.producers.snapshot import SNAPSHOT_SUFFIX
from broker_stub.log.segment import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TRANSACTION_INDEX_SUFFIX,
    Segment,
    file_name,
)
from broker_stub.log.segment_list import SegmentList

_NAME: Final = re.compile(r"([0-9]{20})(\.[a-z]+)(\.(?:deleted|cleaned|swap|rebuilt))?")


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


class FoundFile(NamedTuple):
    """A file of a partition, by what its name says."""

    offset: int
    suffix: str
    ending: str
    """Empty, or what stands behind the name while a segment comes or goes."""
    path: str


def scan(folder: str) -> Iterator[FoundFile]:
    """The files that are named after an offset."""
    for name in os.listdir(folder):
        match = _NAME.fullmatch(name)
        if match is not None:
            offset, suffix, ending = match.groups()
            yield FoundFile(int(offset), suffix, ending or "", os.path.join(folder, name))


def rename_deleted(segment: Segment, *, with_snapshot: bool = True) -> list[str]:
    """Give a segment's files the names of deleted ones; where they are then."""
    renamed = segment.rename(DELETED_SUFFIX)
    snapshot = os.path.join(segment.folder, file_name(segment.base_offset, SNAPSHOT_SUFFIX))
    if with_snapshot:
        with contextlib.suppress(FileNotFoundError):
            os.rename(snapshot, snapshot + DELETED_SUFFIX)
            renamed.append(snapshot + DELETED_SUFFIX)
    return renamed


def retire_oldest(segments: SegmentList, count: int) -> list[str]:
    """Rename the files of the oldest segments and take these out, one by one; where they are then.

    What is on the disk under its name stays in the list: the next start would find it, too.

    Raises:
        OSError: not even the first could be renamed.
    """
    renamed: list[str] = []
    for _ in range(count):
        oldest = segments.all()[0]
        log_path = oldest.log_path
        try:
            renamed += rename_deleted(oldest)
        except OSError:
            if not os.path.exists(log_path):  # its indexes alone are no segment
                segments.remove_oldest(1)
                left = (one for one in scan(oldest.folder) if one.offset == oldest.base_offset)
                renamed += [one.path for one in left]
            if not renamed:
                raise
            break
        segments.remove_oldest(1)
    return renamed


def list_files(folder: str) -> FolderFiles:
    """Look through a folder."""
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
