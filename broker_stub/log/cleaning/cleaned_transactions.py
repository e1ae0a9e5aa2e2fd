"""Tracks transactions during a compaction, batch by batch in log order.

Records of aborted transactions are dropped. A marker stays as long as a batch of its transaction
does, since readers need it to tell aborted records; after that it is dropped like a tombstone, at
its delete horizon. Background thread only.
"""

from collections import deque
from collections.abc import Iterable

from broker_stub.log.index.transaction_index import AbortedTransaction, TransactionIndex
from broker_stub.log.producers.transactions import read_marker
from pyclient.records.batch import RecordBatch


class CleanedTransactions:
    """The transactions seen so far in one pass over a log."""

    __slots__ = ("_aborted", "_committed", "_open_aborted")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Start a pass over a range; `aborted` has all transactions with records in it."""
        self._aborted = deque(sorted(aborted, key=lambda one: one.first_offset))
        # By producer: the aborted transaction that is open here, and whether a batch was seen.
        self._open_aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._committed: set[int] = set()

    def on_records(self, batch: RecordBatch) -> bool:
        """Process a batch of records; returns whether its transaction was aborted."""
        self._open_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        found = self._open_aborted.get(batch.producer_id)
        if found is None:
            self._committed.add(batch.producer_id)
            return False
        self._open_aborted[batch.producer_id] = (found[0], True)
        return True

    def on_control(self, batch: RecordBatch, index: TransactionIndex | None = None) -> bool:
        """Process a control batch; returns whether nothing of its transaction is left.

        An abort that is still needed is added to `index`, that of the segment being written.
        """
        self._open_up_to(batch.last_offset)
        if batch.record_count == 0:
            return True
        marker = read_marker(batch, batch.data)
        if marker is None:
            return False  # not about a transaction
        if marker.committed:
            seen = batch.producer_id in self._committed
            self._committed.discard(batch.producer_id)
            return not seen
        transaction, seen = self._open_aborted.pop(batch.producer_id, (None, False))
        if seen and transaction is not None and index is not None:
            index.append(transaction)
        return not seen

    def _open_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[0].first_offset <= offset:
            transaction = self._aborted.popleft()
            self._open_aborted.setdefault(transaction.producer_id, (transaction, False))
