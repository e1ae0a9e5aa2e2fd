"""Producers' state at the opening of a log: the newest snapshot, then the batches after it.

Runs before the log is served, off the serving thread.
"""

import os
from collections.abc import Sequence

from broker_stub import diagnostics
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.producer_snapshot import (
    SNAPSHOT_SUFFIX,
    CorruptSnapshotError,
    read_snapshot,
)
from broker_stub.log.producer_state import ProducerState
from broker_stub.log.segment import Segment, file_name


def recover_producers(
    log: PartitionLog, segments: Sequence[Segment], snapshots: Sequence[int], end_offset: int
) -> None:
    """Restore the state at `end_offset`, and remove snapshots that no later start will need."""
    usable = [offset for offset in snapshots if offset <= end_offset]
    snapshot_offset = _load_newest(log, usable)
    kept = {segment.base_offset for segment in segments} | {snapshot_offset}
    for offset in snapshots:
        if offset not in kept:
            _unlink_snapshot(log.folder, offset)
    if snapshot_offset < end_offset:
        _replay(log.producer_state, segments, snapshot_offset)


def _load_newest(log: PartitionLog, snapshots: Sequence[int]) -> int:
    """Load the newest snapshot that is whole; its offset, 0 without one."""
    for offset in reversed(snapshots):
        try:
            log.producer_state.load(
                read_snapshot(os.path.join(log.folder, file_name(offset, SNAPSHOT_SUFFIX)))
            )
        except CorruptSnapshotError as error:
            diagnostics.warn("%s; an older one serves, and the log after it", error)
            _unlink_snapshot(log.folder, offset)
        else:
            return offset
    return 0


def _replay(state: ProducerState, segments: Sequence[Segment], from_offset: int) -> None:
    for at, segment in enumerate(segments):
        if at + 1 < len(segments) and segments[at + 1].base_offset <= from_offset:
            continue
        found = segment.find(from_offset)
        for _, header in segment.walk(found[0] if found else segment.size):
            state.update(header, header.last_offset)


def _unlink_snapshot(folder: str, offset: int) -> None:
    path = os.path.join(folder, file_name(offset, SNAPSHOT_SUFFIX))
    if os.path.exists(path):
        os.unlink(path)
