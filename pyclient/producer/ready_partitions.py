"""Which partitions have a batch to send, by leader: after `linger.ms`, or a retry's back-off.

Part of the RecordAccumulator's state, under its lock. Every step costs the same however many
partitions there are, but for the logarithm of the timers that are set.
"""

import heapq
import itertools
import math

from pyclient.producer.partition_queue import PartitionQueue
from pyclient.producer.producer_batch import DUE_NOW


class ReadyPartitions:
    """The ready partitions of each node, first come, first served, and the timers of the rest.

    Attributes:
        wake_needed: something became ready, or a timer was set, of which the I/O thread does not
            know, because it looked before. The thread that sees it set wakes the I/O thread
            and clears it.
    """

    def __init__(self) -> None:
        self._by_node: dict[int, dict[PartitionQueue, None]] = {}
        # A heap; a partition's entry counts only while it is the partition's `timer_ms`.
        self._timers: list[tuple[float, int, PartitionQueue]] = []
        self._serials = itertools.count()
        self.wake_needed = False

    @property
    def nodes(self) -> list[int]:
        """The leaders of ready partitions; -1 stands for none."""
        return list(self._by_node)

    @property
    def next_timer_ms(self) -> float:
        """When the first timer is due; infinity without timers."""
        return self._timers[0][0] if self._timers else math.inf

    def first(self, node: int) -> PartitionQueue | None:
        """The partition of a node that has been ready for the longest time."""
        queues = self._by_node.get(node)
        return None if queues is None else next(iter(queues))

    def topics(self, node: int) -> set[str]:
        """The topics of a node's ready partitions."""
        return {queue.topic.name for queue in self._by_node.get(node, ())}

    def evaluate(self, queue: PartitionQueue, now_ms: float) -> None:
        """List a partition if its oldest batch may be sent, else set its timer."""
        if queue.is_ready or queue.is_blocked or not queue.waiting:
            return
        due_ms = queue.waiting[0].due_ms
        if due_ms <= now_ms:
            self._add(queue)
        elif due_ms < queue.timer_ms:
            self._set_timer(queue, due_ms)

    def reevaluate(self, queue: PartitionQueue, now_ms: float) -> None:
        """As `evaluate`, after the oldest batch or the reason for blocking changed."""
        if queue.is_ready:
            self.remove(queue)
        queue.is_blocked = False
        self.evaluate(queue, now_ms)

    def withdraw(self, queue: PartitionQueue, now_ms: float) -> None:
        """Take a partition off the list if its oldest batch is not to be sent after all."""
        if queue.is_ready and queue.waiting[0].due_ms > now_ms:
            self.remove(queue)

    def remove(self, queue: PartitionQueue) -> None:
        """Take a ready partition off the list."""
        queues = self._by_node[queue.leader]
        del queues[queue]
        if not queues:
            del self._by_node[queue.leader]
        queue.is_ready = False

    def change_leader(self, queue: PartitionQueue, leader: int, now_ms: float) -> None:
        """List a partition under another node."""
        if queue.is_ready:
            self.remove(queue)
        queue.leader = leader
        self.evaluate(queue, now_ms)

    def fire(self, now_ms: float) -> None:
        """Look at the partitions whose timer is due. On the I/O thread, before it reads on."""
        self.wake_needed = False
        timers = self._timers
        while timers and timers[0][0] <= now_ms:
            when_ms, _, queue = heapq.heappop(timers)
            if when_ms == queue.timer_ms:
                queue.timer_ms = math.inf
                self.evaluate(queue, now_ms)

    def end_linger(self, now_ms: float) -> None:
        """Make every lingering batch ready, because memory is short."""
        timers, self._timers = self._timers, []
        for when_ms, _, queue in timers:
            if when_ms != queue.timer_ms:
                continue
            queue.timer_ms = math.inf
            if queue.waiting and queue.waiting[0] is queue.open_batch:
                queue.open_batch.due_ms = DUE_NOW
            self.evaluate(queue, now_ms)

    def _add(self, queue: PartitionQueue) -> None:
        queues = self._by_node.get(queue.leader)
        if queues is None:
            self.wake_needed = True
            self._by_node[queue.leader] = {queue: None}
        else:
            queues[queue] = None
        queue.is_ready = True

    def _set_timer(self, queue: PartitionQueue, when_ms: float) -> None:
        # In this order: an interrupt may leave an entry that does not count, but no timer unset.
        heapq.heappush(self._timers, (when_ms, next(self._serials), queue))
        queue.timer_ms = when_ms
        if self._timers[0][2] is queue:
            self.wake_needed = True
