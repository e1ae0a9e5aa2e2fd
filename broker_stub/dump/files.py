"""Dumps any file of a partition, by its name."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from broker_stub.dump.index_dump import (
    check_index,
    dump_offset_index,
    dump_producer_snapshot,
    dump_time_index,
    dump_transaction_index,
)
from broker_stub.dump.lines import Faults, Line
from broker_stub.dump.segment_dump import SegmentOptions, dump_segment
from broker_stub.log.files.file_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)

CHECKPOINT_SUFFIX: Final = ".checkpoint"
SUFFIXES: Final = (LOG_SUFFIX, CHECKPOINT_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX,
                   TRANSACTION_INDEX_SUFFIX, SNAPSHOT_SUFFIX)  # fmt: skip


class DumpOptions(NamedTuple):
    """What is shown of segments, and how indexes are checked."""

    segment: SegmentOptions = SegmentOptions()
    verify_index_only: bool = False
    index_sanity_check: bool = False


def dump_file(path: Path, options: DumpOptions, faults: Faults) -> Iterator[Line]:
    """The lines of a file.

    Raises:
        OSError: it cannot be read, or an index has no log beside it.
    """
    yield Line(f"Dumping {path}", {"file": str(path)})
    suffix = path.suffix
    if suffix in (LOG_SUFFIX, CHECKPOINT_SUFFIX):
        yield from dump_segment(path, options.segment, faults)
    elif suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX) and options.index_sanity_check:
        yield from check_index(path, faults)
    elif suffix == INDEX_SUFFIX:
        yield from dump_offset_index(path, faults, verify_only=options.verify_index_only)
    elif suffix == TIME_INDEX_SUFFIX:
        yield from dump_time_index(path, faults, verify_only=options.verify_index_only)
    elif suffix == TRANSACTION_INDEX_SUFFIX:
        yield from dump_transaction_index(path, faults)
    elif suffix == SNAPSHOT_SUFFIX:
        yield from dump_producer_snapshot(path, faults)
    else:
        faults.add(f"Ignoring unknown file {path}")


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """Files as they are; of folders, all files below them that have a dump."""
    for path in paths:
        if path.is_dir():
            yield from sorted(
                each
                for each in path.rglob("*")
                if each.suffix in SUFFIXES
                if each.stem.partition("-")[0].isdigit() or each.name == "bootstrap.checkpoint"
            )
        else:
            yield path
