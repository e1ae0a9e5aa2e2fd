"""Handing out collected records one at a time, for `for record in consumer`.

The caller's thread only. The position moves with each record that the program has got, not with
the batch it came in: so `commit` inside the loop commits what the loop has seen. It is computed
on demand (`settle`), because a lock per record would cost more than the record.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable

from pyclient.consumer.fetch.collector import CollectedRecords
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.records.record import ConsumerRecord
from pyclient.types import TopicPartition


class RecordIterator:
    """The records of the last poll that the program has not got yet."""

    __slots__ = ("_collected", "_count", "_index", "_records", "_subscription", "_waiting")

    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._waiting: deque[CollectedRecords] = deque()
        self._collected: CollectedRecords | None = None
        self._records: list[ConsumerRecord] = []
        self._index = 0
        self._count = 0

    def feed(self, collected: Iterable[CollectedRecords]) -> None:
        """Hand these out, behind what is left."""
        self._waiting.extend(collected)

    def take(self) -> ConsumerRecord | None:
        """The next record; None if there is none left."""
        index = self._index
        if index < self._count:
            self._index = index + 1
            return self._records[index]
        self.settle()
        if not self._waiting:
            return None
        self._collected = self._waiting.popleft()
        self._records = self._collected.records
        self._count = len(self._records)
        self._index = 1
        return self._records[0]

    def settle(self) -> None:
        """Move the position behind the last record that the program has got."""
        collected = self._collected
        if collected is None:
            return
        if self._index < self._count:
            next_offset = self._records[self._index - 1].offset + 1
        else:
            next_offset = collected.next_offset
            self._forget()
        self._subscription.consumed(collected.at, next_offset, collected.leader_epoch)

    def prune(self) -> None:
        """Drop records of partitions that were lost, sought or reset meanwhile."""
        self._drop(lambda collected: not self._subscription.is_current(collected.at))

    def rewind(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Drop records that the program has not got, of these partitions or of all.

        They come again: the partition goes back to the first of them.
        """
        self.settle()
        for collected in self._drop(
            lambda collected: partitions is None or collected.at.partition in partitions
        ):
            # Only the first of a partition: the seek begins a new epoch.
            if self._subscription.is_current(collected.at):
                first = collected.records[0].offset
                self._subscription.seek(collected.at.partition, first, collected.leader_epoch)

    def _drop(self, is_dropped: Callable[[CollectedRecords], bool]) -> list[CollectedRecords]:
        """What was dropped, in order, without the records that the program has got."""
        dropped = []
        present = self._collected
        if present is not None and is_dropped(present):
            if self._index < self._count:
                dropped.append(present._replace(records=self._records[self._index :]))
            self._forget()
        kept: deque[CollectedRecords] = deque()
        for collected in self._waiting:
            (dropped if is_dropped(collected) else kept).append(collected)
        self._waiting = kept
        return dropped

    def _forget(self) -> None:
        self._collected = None
        self._records = []
        self._index = self._count = 0
