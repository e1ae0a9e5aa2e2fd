"""Rebuilds the producers' state when a log is opened: the newest snapshot, then the batches after.

Rebuilds `.txnindex` files too, since aborted transactions follow from the same batches. Runs
before the log is served, off the serving thread.
"""

import os
from collections.abc import Collection, Sequence

from broker_stub import diagnostics
from broker_stub.log.batch.header import NO_PRODUCER_ID, BatchHeader
from broker_stub.log.files.file_names import SNAPSHOT_SUFFIX, file_name
from broker_stub.log.files.file_slice import read_exactly
from broker_stub.log.index.transaction_index import TransactionIndex
from broker_stub.log.log_config import INT32_MAX
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.producers.producer_state import ProducerState
from broker_stub.log.producers.snapshot import CorruptSnapshotError, read_snapshot
from broker_stub.log.producers.transactions import note_batches, read_markers
from broker_stub.log.segment import Segment
from pyclient.errors import CorruptRecordError
from pyclient.records.batch import RecordBatch


def recover_producers(
    log: PartitionLog,
    segments: Sequence[Segment],
    snapshots: Sequence[int],
    end_offset: int,
    unindexed: Collection[Segment],
) -> None:
    """Restore the state at `end_offset`, and remove snapshots that are no longer needed.

    Also rebuilds the transaction indexes of the segments in `unindexed`.
    """
    from_offset = min((segment.base_offset for segment in unindexed), default=end_offset)
    snapshot_offset = _load_newest(log, [offset for offset in snapshots if offset <= from_offset])
    newest = max((offset for offset in snapshots if offset <= end_offset), default=0)
    kept = {segment.base_offset for segment in segments} | {snapshot_offset, newest}
    for offset in snapshots:
        if offset not in kept:
            _unlink_snapshot(log.folder, offset)
    for segment in unindexed:
        segment.transaction_index.clear()
    if snapshot_offset < end_offset:
        _replay(log.producer_state, segments, snapshot_offset, unindexed)


def _load_newest(log: PartitionLog, snapshots: Sequence[int]) -> int:
    """Load the newest undamaged snapshot; returns its offset, or 0 if there is none."""
    for offset in reversed(snapshots):
        try:
            log.producer_state.load(
                read_snapshot(os.path.join(log.folder, file_name(offset, SNAPSHOT_SUFFIX)))
            )
        except CorruptSnapshotError as error:
            diagnostics.warn("%s; using an older one, and the log after it", error)
            _unlink_snapshot(log.folder, offset)
        else:
            return offset
    return 0


def _replay(
    state: ProducerState,
    segments: Sequence[Segment],
    from_offset: int,
    unindexed: Collection[Segment],
) -> None:
    for at, segment in enumerate(segments):
        if at + 1 < len(segments) and segments[at + 1].base_offset <= from_offset:
            continue
        index = segment.transaction_index if segment in unindexed else None
        try:
            _replay_segment(state, segment, from_offset, index)
        except CorruptRecordError as error:
            diagnostics.warn(
                "%s: producer state is unknown behind the damage: %s", segment.log_path, error
            )
        if index is not None and segment is not segments[-1]:
            index.spill()


def _replay_segment(
    state: ProducerState, segment: Segment, from_offset: int, index: TransactionIndex | None
) -> None:
    for position, header in segment.search.walk_over_damage(_position_of(segment, from_offset)):
        if header.producer_id == NO_PRODUCER_ID:
            continue
        markers = {}
        try:
            if header.is_control:
                batch = memoryview(read_exactly(segment.records.file(), position, header.size))
                markers = read_markers(batch, [header])
            elif not _follows(state, header):
                RecordBatch(read_exactly(segment.records.file(), position, header.size)).check_crc()
        except CorruptRecordError as error:
            # Its header may be wrong too; the other batches still count.
            diagnostics.warn(
                "%s: ignoring a damaged batch for producer state: %s", segment.log_path, error
            )
            continue
        note_batches(state, index, [header], [header.last_offset], markers)


def _follows(state: ProducerState, header: BatchHeader) -> bool:
    """Whether a batch has its producer's next sequence: then its header can be trusted."""
    entry = state.get(header.producer_id)
    return (
        entry is not None
        and entry.epoch == header.producer_epoch
        and header.base_sequence == (entry.last_sequence + 1) & INT32_MAX
        and header.record_count == header.last_offset_delta + 1
    )


def _position_of(segment: Segment, offset: int) -> int:
    if offset <= segment.base_offset:
        return 0
    found = segment.search.find(offset)
    return found[0] if found else segment.size


def _unlink_snapshot(folder: str, offset: int) -> None:
    path = os.path.join(folder, file_name(offset, SNAPSHOT_SUFFIX))
    if os.path.exists(path):
        os.unlink(path)
