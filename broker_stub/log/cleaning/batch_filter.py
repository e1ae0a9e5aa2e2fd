"""Decides what compaction keeps of a batch: records, tombstones, markers, empty batches.

A record stays if it is the last one of its key. A tombstone stays until its delete horizon, which
its batch gets when compaction first sees it. Some batches stay without records: the last one of a
producer, for its sequences, and the last one of all, so that offsets are kept up to the end.
Background thread only.
"""

from collections.abc import Mapping
from typing import NamedTuple

from broker_stub.log.batch.rewriting import bare_header, raw_records, rewrite
from broker_stub.log.cleaning.cleaned_transactions import CleanedTransactions
from broker_stub.log.cleaning.offset_map import OffsetMap
from broker_stub.log.index.transaction_index import TransactionIndex
from broker_stub.log.log_config import INT64_MAX
from broker_stub.log.producers.producer_state import ProducerState
from pyclient.records.batch import RecordBatch
from pyclient.records.record import ConsumerRecord


class LastRecord(NamedTuple):
    """The last record of a producer."""

    offset: int | None
    """None if only markers of the producer are known."""
    epoch: int


def last_records(producers: ProducerState) -> dict[int, LastRecord]:
    """The last record of each producer, by producer id."""
    return {
        entry.producer_id: LastRecord(
            entry.batches[-1].last_offset if entry.batches else None, entry.epoch
        )
        for entry in producers
    }


class BatchFilter:
    """Filters the batches of a log, in order from the first."""

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        producers: Mapping[int, LastRecord],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._offsets = offsets
        self._transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._delete_horizon_ms = min(now_ms + delete_retention_ms, INT64_MAX)

    def apply(
        self, batch: RecordBatch, index: TransactionIndex, *, is_last: bool
    ) -> bytes | memoryview | None:
        """What stays of a batch: its own bytes if unchanged, None if nothing.

        Raises:
            CorruptRecordError: its records cannot be read.
        """
        unneeded = False
        if batch.is_control:
            unneeded = self._transactions.on_control(batch, index)
            discarded = unneeded and self._is_past_horizon(batch)
        else:
            discarded = self._transactions.on_records(batch)
        found = [] if discarded else raw_records(batch)
        kept = found
        if not batch.is_control:
            kept = [raw for raw in found if self._survives(batch, raw.record)]
        if not kept:
            return bare_header(batch) if is_last or self._is_newest(batch) else None
        if not batch.has_delete_horizon and (
            unneeded or any(raw.record.value is None for raw in kept)
        ):
            return rewrite(batch, kept, self._delete_horizon_ms)
        return batch.data if len(kept) == len(found) else rewrite(batch, kept)

    def _survives(self, batch: RecordBatch, record: ConsumerRecord) -> bool:
        if record.offset > self._offsets.latest_offset:
            return True  # not covered by the map: there may be later records of the key
        if record.key is None or record.offset < self._offsets.get(record.key):
            return False
        return record.value is not None or not self._is_past_horizon(batch)

    def _is_past_horizon(self, batch: RecordBatch) -> bool:
        return batch.has_delete_horizon and batch.base_timestamp <= self._now_ms

    def _is_newest(self, batch: RecordBatch) -> bool:
        newest = self._producers.get(batch.producer_id)
        if newest is None:
            return False
        if newest.offset is None:
            return batch.is_control and batch.producer_epoch == newest.epoch
        return batch.last_offset == newest.offset
