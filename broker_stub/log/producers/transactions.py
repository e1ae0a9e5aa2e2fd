"""Applies control batches: a transaction marker ends the open transaction of its producer.

A marker is parsed before its batch is written, so that an invalid one is refused. After the write
it ends the transaction; an abort is added to the segment's `.txnindex`. Replay does the same.
Guarded by the lock of the log.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from broker_stub.log.batch.header import NO_PRODUCER_ID, BatchHeader
from broker_stub.log.index.transaction_index import AbortedTransaction, TransactionIndex
from broker_stub.log.log_config import INT64_MAX
from broker_stub.log.producers.producer_state import ProducerState
from pyclient.errors import InvalidProducerEpochError, TransactionCoordinatorFencedError
from pyclient.records.batch import RecordBatch
from pyclient.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    control_record_type,
    end_transaction_marker,
)
from pyclient.records.header import CONTROL

EPOCH_BUMP_FROM: Final = 2
"""The transaction version in which every transaction ends with a new epoch (KIP-890)."""


class TransactionRanges:
    """The offset ranges of transactions, per producer."""

    __slots__ = ("_ranges",)

    def __init__(
        self,
        ended: Iterable[AbortedTransaction],
        undecided: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """From transactions that have ended, and the first offsets of open ones by producer."""
        self._ranges: dict[int, list[tuple[int, int]]] = {
            producer_id: [(first_offset, INT64_MAX)]
            for producer_id, first_offset in undecided.items()
        }
        for one in ended:
            ranges = self._ranges.setdefault(one.producer_id, [])
            ranges.append((one.first_offset, one.last_offset))

    def covers(self, batch: BatchHeader | RecordBatch) -> bool:
        """Whether a batch belongs to one of the transactions."""
        return batch.is_transactional and any(
            first_offset <= batch.base_offset <= last_offset
            for first_offset, last_offset in self._ranges.get(batch.producer_id, ())
        )


def read_marker(
    header: BatchHeader | RecordBatch, batch: bytes | memoryview
) -> EndTransactionMarker | None:
    """The transaction marker in a control batch.

    None if the control record is of another type, or was removed by compaction.

    Raises:
        CorruptRecordError: the control batch is malformed.
    """
    if header.producer_id == NO_PRODUCER_ID or header.record_count == 0:
        return None
    records = RecordBatch(batch)
    if control_record_type(records) not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    return end_transaction_marker(records)


def read_markers(
    batches: memoryview, headers: Sequence[BatchHeader]
) -> dict[int, EndTransactionMarker]:
    """The transaction markers in adjacent batches, by the index of the batch.

    Raises:
        CorruptRecordError: a control batch is malformed.
    """
    markers = {}
    position = 0
    for index, header in enumerate(headers):
        if header.attributes & CONTROL:
            marker = read_marker(header, batches[position : position + header.size])
            if marker is not None:
                markers[index] = marker
        position += header.size
    return markers


def check_marker(
    state: ProducerState,
    header: BatchHeader,
    marker: EndTransactionMarker,
    *,
    ends_with_new_epoch: bool,
) -> None:
    """Refuse a marker of a coordinator that has been replaced, and one that came too late.

    If every transaction ends with a new epoch, a marker of the open transaction's own epoch is that
    of the transaction before.

    Raises:
        TransactionCoordinatorFencedError: a newer coordinator has ended a transaction here.
        InvalidProducerEpochError: the transaction that it ends is over.
    """
    entry = state.get(header.producer_id)
    if entry is None:
        return
    if ends_with_new_epoch and entry.is_in_transaction and header.producer_epoch <= entry.epoch:
        raise InvalidProducerEpochError(
            f"a marker of epoch {header.producer_epoch}, but producer {header.producer_id} writes "
            f"with epoch {entry.epoch}"
        )
    if marker.coordinator_epoch < entry.coordinator_epoch:
        raise TransactionCoordinatorFencedError(
            f"a marker of coordinator epoch {marker.coordinator_epoch}, but epoch "
            f"{entry.coordinator_epoch} has written here"
        )


def note_batches(
    state: ProducerState,
    index: TransactionIndex | None,
    headers: Sequence[BatchHeader],
    last_offsets: Sequence[int],
    markers: Mapping[int, EndTransactionMarker],
) -> None:
    """Update the producers' state for written batches, with the last offsets they were assigned.

    `index` is the transaction index of their segment; None if it already has their entries.
    """
    for at, (header, last_offset) in enumerate(zip(headers, last_offsets, strict=True)):
        if not header.attributes & CONTROL:
            state.update(header, last_offset)
        elif at in markers:
            _end_transaction(state, index, header, last_offset, markers[at])


def _end_transaction(
    state: ProducerState,
    index: TransactionIndex | None,
    header: BatchHeader,
    last_offset: int,
    marker: EndTransactionMarker,
) -> None:
    first_offset = state.end_transaction(header, marker.coordinator_epoch, last_offset)
    if first_offset is None or marker.committed or index is None:
        return
    undecided = state.first_unstable_offset
    index.append(
        AbortedTransaction(
            header.producer_id,
            first_offset,
            last_offset,
            last_offset + 1 if undecided is None else undecided,
        )
    )
