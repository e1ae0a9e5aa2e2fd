"""Records on their way to the sender: per partition a queue of batches.

Callers' threads append to a partition's open batch or start one, and compress the batches that they
fill. The I/O thread drains batches, puts them back and expires them, and compresses those that it
takes before they are full. One lock guards the topics, their queues, the ready partitions and the
incomplete batches; only the pure-Python twin needs it for an append to an open batch, because the
native append is atomic. Memory is allocated outside the lock: the I/O thread takes the lock before
it gives memory back. After an allocation the append looks at the queue again.

A signal handler may interrupt the main thread anywhere in an append, and raise (Ctrl-C does). The
steps under the lock are ordered so that the next thread completes what was left half done.

Nothing here scans partitions: see `ready_partitions`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from threading import get_ident
from typing import TYPE_CHECKING, TypeAlias

from pyclient import _twin
from pyclient.errors import BufferExhaustedError, IllegalStateError, KafkaError
from pyclient.metadata import NO_LEADER, ClusterMetadata
from pyclient.producer.batch_result import BatchResult
from pyclient.producer.batch_sizing import BatchSizing, Limits, Record
from pyclient.producer.buffer_pool import BufferPool
from pyclient.producer.delivery_deadlines import DeliveryDeadlines
from pyclient.producer.partition_queue import PartitionQueue, TopicQueues
from pyclient.producer.producer_batch import DUE_NOW, BuilderFactory, ProducerBatch
from pyclient.producer.ready_partitions import ReadyPartitions
from pyclient.producer.reentry import check_not_reentered, interrupted_itself, new_lock
from pyclient.records.builder import BatchBuilder
from pyclient.serialization import Bytes, Headers

if TYPE_CHECKING:
    from pyclient._twin import TopicSlots
    from pyclient.net.engine import Engine

log = logging.getLogger(__name__)

AppendSome: TypeAlias = Callable[[BatchBuilder, int], range]
"""Appends rows from the given one on, as many as fit; returns their indexes in the batch."""
Appended: TypeAlias = tuple[BatchResult, int]
MayDrain: TypeAlias = Callable[[PartitionQueue, ProducerBatch], bool]


class RecordAccumulator:
    """The queues of all partitions."""

    def __init__(
        self,
        limits: Limits,
        pool: BufferPool,
        engine: Engine,
        new_builder: BuilderFactory,
        *,
        compresses: bool = False,
    ) -> None:
        self._limits = limits
        self._compresses = compresses
        self._pool = pool
        self._sizing = BatchSizing(limits, pool)
        self._engine = engine
        self._new_builder = new_builder
        self._appends_are_atomic = _twin.NATIVE
        self._lock = new_lock()
        # Those that records can be sent to; callers look one up without the lock. The same
        # topics in both, until no more records are taken.
        self.topics: dict[str, TopicQueues] = {}
        self.slots: dict[str, TopicSlots] = {}
        # Also those that the metadata has lost, for the batches they still have.
        self._all_topics: dict[str, TopicQueues] = {}
        self._ready = ReadyPartitions()
        self._deadlines = DeliveryDeadlines(limits.delivery_timeout_ms)
        self._incomplete: dict[ProducerBatch, None] = {}
        self._compressors: set[int] = set()  # threads that compress a batch
        self._refusal: KafkaError | None = None  # why no more records are taken

    # --- callers' threads --------------------------------------------------------------------

    def append(
        self,
        topic: TopicQueues,
        partition: int | None,
        timestamp_ms: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Headers,
        max_block_ms: float,
    ) -> Appended:
        """Add a record to its partition's open batch, or start one.

        Args:
            topic: from `topics`.
            partition: None for the sticky one.
            timestamp_ms: of the record.
            key: its bytes.
            value: its bytes.
            headers: pairs of text and bytes.
            max_block_ms: how long to wait for memory.

        Returns:
            The result of the record's batch, and the record's index in it.

        Raises:
            RecordTooLargeError: no batch could hold the record.
            BufferExhaustedError: there was no memory.
            IllegalStateError: a signal handler has interrupted another append.
            KafkaError: the producer is closed, or cannot go on.
        """
        check_not_reentered(self._lock)
        queue = topic.sticky_queue if partition is None else topic.queues[partition]
        batch = queue.open_batch
        if batch is not None:
            # It may be sealed by now; then it takes no more, and we look again under the lock.
            if self._appends_are_atomic:
                index = batch.builder.try_append(timestamp_ms, key, value, headers)
            else:
                with self._lock:
                    index = batch.builder.try_append(timestamp_ms, key, value, headers)
            if index >= 0:
                return batch.result, index
        record = (timestamp_ms, key, value, headers)
        return self._append_to_new(topic, partition, record, max_block_ms)

    def append_some(
        self, topic: TopicQueues, partition: int | None, append: AppendSome, start: int
    ) -> tuple[BatchResult, range] | None:
        """Add as many rows as fit into the open batch; None if it is full, or there is none.

        The caller then passes the next row to `append`, which makes room or waits for it.
        """
        check_not_reentered(self._lock)
        queue = topic.sticky_queue if partition is None else topic.queues[partition]
        batch = queue.open_batch
        if batch is None:
            return None
        if self._appends_are_atomic:
            indexes = append(batch.builder, start)
        else:
            with self._lock:
                indexes = append(batch.builder, start)
        return (batch.result, indexes) if indexes else None

    def _append_to_new(
        self,
        topic: TopicQueues,
        partition: int | None,
        record: Record,
        max_block_ms: float,
    ) -> Appended:
        """Add a record that did not fit into an open batch."""
        size = self._sizing.buffer_size(record)
        self.check_not_interrupted()
        buffer: bytearray | None = None
        full: ProducerBatch | None = None
        started: ProducerBatch | None = None
        try:
            while True:
                now_ms = self._engine.clock.monotonic_ms()
                with self._lock:
                    queue, appended, full = self._try_append(topic, partition, record, now_ms)
                    if full is not None:
                        self._compressors.add(get_ident())
                        full.begin_compressing()
                        self._ready.withdraw(queue, now_ms)
                    elif appended is None and buffer is not None:
                        # The buffer is ours or the batch's: one step, without a call in it.
                        started, buffer = self._new_batch(queue, buffer, now_ms), None
                        appended = self._begin(started, record, now_ms)
                    wake, self._ready.wake_needed = self._ready.wake_needed, False
                if wake:
                    self._engine.wake()  # before we wait for memory: a batch may be full
                if appended is not None:
                    return appended
                if full is not None:
                    self._compress(full)
                    full = None
                elif buffer is None:
                    buffer = self._allocate(size, max_block_ms)
        except BaseException:  # mostly refused; but an interrupt may come anywhere
            self._tidy_up(full, started)
            raise
        finally:
            if buffer is not None:  # another thread's batch had room after all
                self._pool.release([buffer])

    def _tidy_up(self, full: ProducerBatch | None, started: ProducerBatch | None) -> None:
        """Finish what an exception has left half done."""
        if full is not None:
            self._end_compressing(full)
        if started is not None and not started.builder.record_count:
            self._pool.release(started.take_buffers())  # no other reference to it exists
        self._engine.wake()  # which may have been due

    def _try_append(
        self,
        topic: TopicQueues,
        partition: int | None,
        record: Record,
        now_ms: float,
    ) -> tuple[PartitionQueue, Appended | None, ProducerBatch | None]:
        """Choose the partition and look once more at its open batch. Under the lock.

        Returns the partition, where the record went, and a batch that has to be compressed before
        it is worth looking again.
        """
        if self._refusal is not None:
            raise copy(self._refusal)  # each caller gets its own traceback
        queue = topic.sticky_queue if partition is None else topic.queues[partition]
        while True:
            batch = queue.open_batch
            if batch is None:
                # Between two batches, and not before: a batch that grows is worth staying for.
                if partition is None and topic.leave_sticky_queue():
                    queue = topic.sticky_queue
                    continue
                return queue, None, None
            index = batch.builder.try_append(*record)
            if index >= 0:
                return queue, (batch.result, index), None
            # Sealed but still the open batch: the thread that was sealing it was interrupted.
            if batch.builder.is_sealed or not self._sizing.grow(batch, record, now_ms):
                queue.seal()
                if self._compresses:
                    return queue, None, batch
            elif self._sizing.is_ready(batch, record):
                batch.due_ms = DUE_NOW
            self._ready.evaluate(queue, now_ms)

    def _new_batch(self, queue: PartitionQueue, buffer: bytearray, now_ms: float) -> ProducerBatch:
        result = BatchResult(queue.topic_partition, self._engine)
        due_ms = now_ms + self._limits.linger_ms
        return ProducerBatch(queue, self._new_builder(buffer), result, now_ms, due_ms)

    def _begin(self, batch: ProducerBatch, record: Record, now_ms: float) -> Appended:
        """Put the first record into a batch, which is known to fit, and take the batch up.

        Under the lock. Of a batch all or nothing has to be known, whatever interrupts us: before
        the lock is let go, for then the I/O thread may send it.
        """
        try:
            index = batch.builder.try_append(*record)
            self._add(batch, now_ms)
        except BaseException:
            if batch.builder.record_count:
                self._add(batch, now_ms)
            raise
        return batch.result, index

    def _add(self, batch: ProducerBatch, now_ms: float) -> None:
        """Register the batch. Each step may run twice, after an interrupt."""
        batch.queue.topic.used_ms = now_ms
        self._incomplete[batch] = None
        batch.queue.push(batch)
        self._deadlines.watch(batch)
        self._ready.evaluate(batch.queue, now_ms)

    def _compress(self, batch: ProducerBatch) -> None:
        """Compress a full batch on the caller's thread, to use another core."""
        try:
            batch.compress(self._pool)
        except Exception:  # the I/O thread tries again, and has ways to fail a batch
            log.debug("A full batch could not be compressed", exc_info=True)
        finally:
            self._end_compressing(batch)

    def _end_compressing(self, batch: ProducerBatch) -> None:
        """Make the batch ready, whether or not it was compressed."""
        now_ms = self._engine.clock.monotonic_ms()
        with self._lock:
            batch.due_ms = DUE_NOW
            self._ready.evaluate(batch.queue, now_ms)
            if batch.is_abandoned:
                self._pool.release(batch.take_buffers())
            self._compressors.discard(get_ident())
            batch.is_compressing = False
            wake, self._ready.wake_needed = self._ready.wake_needed, False
        if wake:
            self._engine.wake()

    def check_not_interrupted(self) -> None:
        """Raise where a signal handler has interrupted this thread inside an append.

        It must not wait: for a lock that the thread holds, for memory of the batch that the thread
        compresses, or for that batch.

        Raises:
            IllegalStateError: it has; says what to do in a handler.
        """
        check_not_reentered(self._lock)
        self._pool.check_not_interrupted()
        if self._compressors and get_ident() in self._compressors:
            raise interrupted_itself()

    def _allocate(self, size: int, max_block_ms: float) -> bytearray:
        if not self._engine.on_io_thread():
            return self._pool.allocate(size, max_block_ms)
        buffer = self._pool.try_allocate(size)
        if buffer is None:
            raise BufferExhaustedError(
                "buffer.memory is used up, and a callback must not wait: it runs on the thread"
                " that frees memory"
            )
        return buffer

    def seal_all(self) -> list[BatchResult]:
        """Seal all batches, so that they do not linger; returns the results to wait for.

        Raises:
            IllegalStateError: a signal handler has interrupted an append.
        """
        self.check_not_interrupted()
        now_ms = self._engine.clock.monotonic_ms()
        with self._lock:
            return self._seal_all(now_ms)

    def close(self) -> list[BatchResult]:
        """As `seal_all`, and refuse further records."""
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
        """Publish a topic for lookups without the lock."""
        self.topics[topic.name] = topic
        if self._refusal is None:
            self.slots[topic.name] = topic.slots

    # --- the I/O thread ----------------------------------------------------------------------

    @property
    def incomplete_count(self) -> int:
        """Batches without an outcome; read without the lock."""
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
        """Topics with a batch to send and no leader."""
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
        """Take the batches of a finished request off the wire."""
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
        """Check again which of these partitions may be drained, after their batches changed."""
        with self._lock:
            for queue in queues:
                self._ready.reevaluate(queue, now_ms)

    def reevaluate_all(self, now_ms: float) -> None:
        """Check every partition; for rare events."""
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
