"""Records on their way to the sender: per partition a queue of batches.

Callers' threads append, and compress the batches that they have filled: that half is in
`record_appends`. The I/O thread does the rest, and compresses what it takes before it is full. One
lock guards the topics, their queues, the ready partitions and the incomplete batches; but an append
to an open batch needs it only in the pure-Python twin, because the native one is atomic.

Nothing here scans partitions: see `ready_partitions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from pyclient.errors import IllegalStateError, KafkaError
from pyclient.metadata import NO_LEADER, ClusterMetadata
from pyclient.producer.batch_result import BatchResult
from pyclient.producer.partition_queue import PartitionQueue, TopicQueues
from pyclient.producer.producer_batch import DUE_NOW, ProducerBatch
from pyclient.producer.record_appends import RecordAppends

MayDrain: TypeAlias = Callable[[PartitionQueue, ProducerBatch], bool]


class RecordAccumulator(RecordAppends):
    """The queues of all partitions."""

    # Callers' threads.

    def seal_all(self) -> list[BatchResult]:
        """Have all that was appended sent without lingering; the results to wait for.

        Raises:
            IllegalStateError: a signal handler has interrupted an append.
        """
        self.check_not_interrupted()
        now_ms = self._engine.clock.monotonic_ms()
        with self._lock:
            return self._seal_all(now_ms)

    def close(self) -> list[BatchResult]:
        """The same, and append no more."""
        self.check_not_interrupted()
        now_ms = self._engine.clock.monotonic_ms()
        with self._lock:
            self._refuse(IllegalStateError("the producer is closed"))
            return self._seal_all(now_ms)

    def _refuse(self, error: KafkaError) -> None:
        """Take no more records. Under the lock."""
        self._refusal = self._refusal or error
        self.slots.clear()

    def _seal_all(self, now_ms: float) -> list[BatchResult]:
        for batch in self._incomplete:
            if batch.queue.open_batch is batch:
                batch.queue.seal()
                self._ready.evaluate(batch.queue, now_ms)
        return [batch.result for batch in self._incomplete]

    def add_topic(self, name: str) -> TopicQueues | None:
        """The queues of a topic; None if the metadata does not know it."""
        self.check_not_interrupted()
        now_ms = self._engine.clock.monotonic_ms()
        with self._lock:
            # Read under the lock: a newer snapshot comes after us, and finds the topic.
            metadata = self._engine.metadata.snapshot.topics.get(name)
            if metadata is None or not metadata.partitions:
                return None
            topic = self._all_topics.get(name)
            if topic is None:
                limits = self._limits
                topic = TopicQueues(
                    metadata, self._engine.entropy, limits.batch_size, limits.batch_max_size
                )
                self._all_topics[name] = topic
            self._apply_leaders(topic.update(metadata), now_ms)
            self._offer(topic)
            return topic

    def _offer(self, topic: TopicQueues) -> None:
        """Let callers find a topic."""
        self.topics[topic.name] = topic
        if self._refusal is None:
            self.slots[topic.name] = topic.slots

    # The I/O thread.

    @property
    def incomplete_count(self) -> int:
        """Batches without an outcome; a look without the lock."""
        return len(self._incomplete)

    def update_metadata(self, snapshot: ClusterMetadata) -> None:
        """Follow leaders, new partitions, lost topics."""
        now_ms = self._engine.clock.monotonic_ms()
        with self._lock:
            for name, topic in self._all_topics.items():
                metadata = snapshot.topics.get(name)
                self._apply_leaders(topic.update(metadata), now_ms)
                if metadata is None:
                    self.topics.pop(name, None)
                    self.slots.pop(name, None)
                else:
                    self._offer(topic)

    def _apply_leaders(
        self, changes: Iterable[tuple[PartitionQueue, int, int]], now_ms: float
    ) -> None:
        for queue, leader, epoch in changes:
            if epoch > queue.leader_epoch and queue.waiting:
                # A new leader need not wait for the back-off from the old one (KIP-951).
                oldest = queue.waiting[0]
                if oldest.attempts:
                    oldest.due_ms = DUE_NOW
            queue.leader_epoch = epoch
            self._ready.change_leader(queue, leader, now_ms)

    def last_used_ms(self, name: str) -> float:
        """When a topic's last batch was begun; infinity while it has one."""
        with self._lock:
            topic = self._all_topics.get(name)
            if topic is None:
                return -math.inf
            return topic.used_ms if topic.is_empty else math.inf

    @property
    def topics_without_leader(self) -> set[str]:
        """Those that have a batch to send and do not know where to."""
        with self._lock:
            return self._ready.topics(NO_LEADER)

    def ready_nodes(self, now_ms: float) -> list[int]:
        """The leaders of partitions with a batch to send; -1 for those without a leader."""
        with self._lock:
            self._ready.fire(now_ms)
            if self._pool.waiting_count:
                self._ready.end_linger(now_ms)
            return self._ready.nodes

    @property
    def next_poll_ms(self) -> float:
        """When a batch becomes ready or expires by time alone."""
        with self._lock:
            return min(self._ready.next_timer_ms, self._deadlines.next_ms)

    def drain(
        self, node: int, max_bytes: int, now_ms: float, may_drain: MayDrain
    ) -> list[ProducerBatch]:
        """Take the oldest batch of each ready partition of a node, as far as a request goes.

        The batches are sealed, and on the wire from now on. A partition that `may_drain` refuses
        is not asked about again before `reevaluate`; it is called under the lock.
        """
        drained: list[ProducerBatch] = []
        size = 0
        with self._lock:
            while (queue := self._ready.first(node)) is not None:
                batch = queue.waiting[0]
                if not may_drain(queue, batch):
                    self._ready.remove(queue)
                    queue.is_blocked = True
                    continue
                if batch is queue.open_batch:
                    queue.seal()  # first, for its size is not settled before
                batch_bytes = batch.size_in_bytes
                if drained and size + batch_bytes > max_bytes:
                    break
                self._ready.remove(queue)
                self._put_on_wire(queue, now_ms)
                drained.append(batch)
                size += batch_bytes
            # Only now, for a request holds one batch of a partition; and to the end of the
            # line, for the others wait longer.
            for batch in drained:
                self._ready.evaluate(batch.queue, now_ms)
        unused = [
            buffer for batch in drained if batch.buffer_count > 1 for buffer in batch.take_unused()
        ]
        if unused:
            self._pool.release(unused)
        return drained

    def _put_on_wire(self, queue: PartitionQueue, now_ms: float) -> None:
        batch = queue.pop()
        batch.is_on_wire = True
        batch.drained_ms = now_ms
        queue.on_wire.append(batch)

    def take_off_wire(self, batches: Iterable[ProducerBatch]) -> None:
        """A request is over."""
        with self._lock:
            for batch in batches:
                batch.is_on_wire = False
                batch.queue.on_wire.remove(batch)

    def put_back(self, batch: ProducerBatch, due_ms: float) -> None:
        """Send a batch again, not before `due_ms`. A `reevaluate` of its partition is due."""
        with self._lock:
            batch.due_ms = due_ms
            batch.queue.put_back(batch)

    def replace(self, batch: ProducerBatch, parts: Sequence[ProducerBatch]) -> None:
        """Send the parts of a batch in its place. A `reevaluate` of its partition is due."""
        with self._lock:
            del self._incomplete[batch]
            for part in parts:
                self._incomplete[part] = None
                batch.queue.put_back(part)

    def complete(self, batches: Iterable[ProducerBatch]) -> None:
        """Forget batches that have their outcome, after their callbacks have run."""
        with self._lock:
            for batch in batches:
                self._incomplete.pop(batch, None)

    def reevaluate(self, queues: Iterable[PartitionQueue], now_ms: float) -> None:
        """Something changed about the batches of these partitions: what may be drained now?"""
        with self._lock:
            for queue in queues:
                self._ready.reevaluate(queue, now_ms)

    def reevaluate_all(self, now_ms: float) -> None:
        """The same for every partition; for events that are rare."""
        with self._lock:
            for topic in self._all_topics.values():
                for queue in topic.queues:
                    self._ready.reevaluate(queue, now_ms)

    def take_expired(self, now_ms: float) -> list[ProducerBatch]:
        """The batches whose delivery time is over: those that waited are in no queue any more.

        Those on the wire stay there until their request is over.
        """
        with self._lock:
            expired = self._deadlines.take_expired(now_ms)
            for batch in expired:
                batch.is_abandoned = batch.is_compressing
                self._ready.reevaluate(batch.queue, now_ms)
        return expired

    def take_all(self, refusal: KafkaError) -> list[ProducerBatch]:
        """Every batch without an outcome: those that waited are in no queue any more.

        From now on nothing is appended; callers get `refusal`, unless there was one before.
        """
        with self._lock:
            self._refuse(refusal)
            for batch in self._incomplete:
                batch.is_abandoned = batch.is_compressing
                queue = batch.queue
                if queue.is_ready:
                    self._ready.remove(queue)
                queue.seal()
                while queue.waiting:
                    queue.pop()
            return list(self._incomplete)
