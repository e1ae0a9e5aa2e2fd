"""The names of the files in a partition's directory, which are Kafka's. No state."""

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
SNAPSHOT_SUFFIX: Final = ".snapshot"

# Appended to those names while a segment is replaced or removed; see `cleaning/segment_swap`.
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
# Appended while an index is rebuilt; see `index/reindexing`.
REBUILT_SUFFIX: Final = ".rebuilt"

_NAME: Final = re.compile(r"([0-9]{20})(\.[a-z]+)(\.(?:deleted|cleaned|swap|rebuilt))?")


class FoundFile(NamedTuple):
    """A file of a partition, taken apart by its name."""

    offset: int
    suffix: str
    ending: str
    """Empty, or the suffix of a file that is being replaced, rebuilt or removed."""
    path: str


def file_name(offset: int, suffix: str) -> str:
    """The name of a file that belongs to `offset`: 20 digits and a suffix."""
    return f"{offset:020d}{suffix}"


def scan(directory: str) -> Iterator[FoundFile]:
    """The files in a directory that are named after an offset."""
    for name in os.listdir(directory):
        match = _NAME.fullmatch(name)
        if match is not None:
            offset, suffix, ending = match.groups()
            yield FoundFile(int(offset), suffix, ending or "", os.path.join(directory, name))
