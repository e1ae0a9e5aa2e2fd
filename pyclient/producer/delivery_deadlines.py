"""When batches run out of time: `delivery.timeout.ms` after their first record.

Part of the RecordAccumulator's state, under its lock. A partition is watched once, for its
oldest batch, so that nothing is set or cancelled per batch.
"""

import heapq
import itertools
import math

from pyclient.producer.partition_queue import PartitionQueue
from pyclient.producer.producer_batch import ProducerBatch


class DeliveryDeadlines:
    """A heap of the partitions that have batches, by the deadline of the oldest."""

    def __init__(self, timeout_ms: float) -> None:
        self._timeout_ms = timeout_ms
        self._heap: list[tuple[float, int, PartitionQueue]] = []
        self._serials = itertools.count()

    @property
    def next_ms(self) -> float:
        """The earliest time at which a batch can expire; infinity if there is none."""
        return self._heap[0][0] if self._heap else math.inf

    def watch(self, batch: ProducerBatch) -> None:
        """Watch a batch, unless an older one of its partition is watched already."""
        queue = batch.queue
        if not queue.is_watched:
            # In this order: being watched twice, after an interrupt, does no harm.
            heapq.heappush(self._heap, (self._deadline_ms(batch), next(self._serials), queue))
            queue.is_watched = True

    def take_expired(self, now_ms: float) -> list[ProducerBatch]:
        """The batches whose time is over; those that waited are in no queue any more."""
        expired: list[ProducerBatch] = []
        while self._heap and self._heap[0][0] <= now_ms:
            _, _, queue = heapq.heappop(self._heap)
            queue.is_watched = False
            unfinished = [batch for batch in queue.on_wire if not batch.is_done]
            expired += (one for one in unfinished if self._deadline_ms(one) <= now_ms)
            left = [one for one in unfinished if self._deadline_ms(one) > now_ms]
            while queue.waiting and self._deadline_ms(queue.waiting[0]) <= now_ms:
                if queue.waiting[0] is queue.open_batch:
                    queue.seal()
                expired.append(queue.pop())
            left += itertools.islice(queue.waiting, 1)
            if left:
                self.watch(min(left, key=self._deadline_ms))
        return expired

    def _deadline_ms(self, batch: ProducerBatch) -> float:
        return batch.created_ms + self._timeout_ms
