"""Leaving out what aborted transactions wrote, for `isolation.level=read_committed`.

A fetch response lists the aborted transactions that begin among its records: producer and first
offset. Each ends at that producer's abort marker, which is a control batch in the log itself.
"""

from collections.abc import Iterable

from pyclient.protocol.messages.fetch import AbortedTransaction
from pyclient.records.batch import AnyBatch, RecordBatch
from pyclient.records.control import ControlRecordType, control_record_type


class AbortedTransactions:
    """Follows one partition's batches in order and tells which of them were aborted."""

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._ahead = sorted(transactions, key=lambda one: one.first_offset, reverse=True)
        self._open: set[int] = set()

    def covers(self, batch: AnyBatch) -> bool:
        """Whether the batch is part of an aborted transaction. Each batch is asked for once."""
        while self._ahead and self._ahead[-1].first_offset <= batch.last_offset:
            self._open.add(self._ahead.pop().producer_id)
        if batch.producer_id not in self._open:
            return False
        if batch.is_control and _is_abort(batch):
            self._open.discard(batch.producer_id)
        return batch.is_transactional


def _is_abort(batch: AnyBatch) -> bool:
    """Whether the control batch is an abort marker; compaction may have emptied it."""
    return (
        isinstance(batch, RecordBatch)
        and batch.record_count > 0
        and control_record_type(batch) is ControlRecordType.ABORT
    )
