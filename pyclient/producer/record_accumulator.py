"""Batches that wait for the sender, in a queue per partition.

Callers' threads append to a partition's open batch or start one, and compress the batches that they
fill. The I/O thread drains, re-enqueues and expires batches, and compresses those that it drains
before they are full. One lock guards the topics, their queues, the ready partitions and the
incomplete batches. An append to an open batch takes it only in the pure-Python twin: the native
append is atomic. Memory is allocated outside the lock, because the I/O thread needs the lock before
it releases memory; after an allocation, append checks the queue again.

A signal handler may interrupt the main thread anywhere in an append, and raise (Ctrl-C does). The
steps under the lock are ordered so that the next thread completes what an interrupt left undone.

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
"""Appends as many rows as fit, from the given one on; returns their indexes in the batch."""
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
        # Topics that accept records; callers look one up without the lock. Both have the same
        # topics until the accumulator refuses records.
        self.topics: dict[str, TopicQueues] = {}
        self.slots: dict[str, TopicSlots] = {}
        # Includes topics that left the metadata, for the batches they still have.
        self._all_topics: dict[str, TopicQueues] = {}
        self._ready = ReadyPartitions()
        self._deadlines = DeliveryDeadlines(limits.delivery_timeout_ms)
        self._incomplete: dict[ProducerBatch, None] = {}
        self._compressors: set[int] = set()  # threads that are compressing a batch
        self._refusal: KafkaError | None = None  # why records are refused
        self._suspension: KafkaError | None = None  # the same, until `resume`
        self.on_wire_count = 0  # batches in flight; changed by the I/O thread

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
            partition: None for the sticky partition.
            timestamp_ms: the record's timestamp.
            key: the serialized key.
            value: the serialized value.
            headers: (str, bytes) pairs.
            max_block_ms: how long to wait for memory.

        Returns:
            The result of the record's batch, and the record's index in it.

        Raises:
            RecordTooLargeError: no batch could hold the record.
            BufferExhaustedError: no memory became free in time.
            IllegalStateError: called in a signal handler that interrupted another append.
            KafkaError: the producer is closed, or has failed for good.
        """
        check_not_reentered(self._lock)
        queue = topic.sticky_queue if partition is None else topic.queues[partition]
        batch = queue.open_batch
        if batch is not None:
            # It may be sealed by now: the append then fails and is tried again under the lock.
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
        """Add as many rows as fit into the open batch; None if it is full or there is none.

        The caller then passes the next row to `append`, which makes room or waits for memory.
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
                        # Both assignments are one step: an interrupt must not lose the buffer.
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
        except BaseException:  # a refusal, or an interrupt anywhere above
            self._tidy_up(full, started)
            raise
        finally:
            if buffer is not None:  # another thread's batch had room
                self._pool.release([buffer])

    def _tidy_up(self, full: ProducerBatch | None, started: ProducerBatch | None) -> None:
        """Finish what an exception has interrupted."""
        if full is not None:
            self._end_compressing(full)
        if started is not None and not started.builder.record_count:
            self._pool.release(started.take_buffers())  # no other reference to it exists
        self._engine.wake()  # the exception may have prevented it

    def _try_append(
        self,
        topic: TopicQueues,
        partition: int | None,
        record: Record,
        now_ms: float,
    ) -> tuple[PartitionQueue, Appended | None, ProducerBatch | None]:
        """Choose the partition and try its open batch again. Called under the lock.

        Returns the partition, the record's place if it was appended, and a full batch to compress
        before the next try.
        """
        refusal = self._refusal or self._suspension
        if refusal is not None:
            raise copy(refusal)  # each caller gets its own traceback
        queue = topic.sticky_queue if partition is None else topic.queues[partition]
        while True:
            batch = queue.open_batch
            if batch is None:
                # Switch only between batches, so that a growing batch is filled first.
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
        """Append the first record, which is known to fit, and register the batch.

        Called under the lock. Even if interrupted, a batch with a record must be fully registered
        before the lock is released: the I/O thread may send it from then on.
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
        """Register the batch. An interrupt may make each step run twice."""
        batch.queue.topic.used_ms = now_ms
        self._incomplete[batch] = None
        batch.queue.push(batch)
        self._deadlines.watch(batch)
        self._ready.evaluate(batch.queue, now_ms)

    def _compress(self, batch: ProducerBatch) -> None:
        """Compress a full batch on the caller's thread, to use another core."""
        try:
            batch.compress(self._pool)
        except Exception:  # the I/O thread tries again, and can fail the batch
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
        """Raise if this is a signal handler that interrupted an append of the same thread.

        Waiting would deadlock: the thread holds the lock, or the memory or batch waited for.

        Raises:
            IllegalStateError: it is; says what to do in a handler.
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
        """Seal all batches so that none lingers; returns the results to wait for.

        Raises:
            IllegalStateError: called in a signal handler that interrupted an append.
        """
        self.check_not_interrupted()
        now_ms = self._engine.clock.monotonic_ms()
        with self._lock:
            return self._seal_all(now_ms)

    def close(self) -> list[BatchResult]:
        """Refuse further records, then `seal_all`."""
        self.check_not_interrupted()
        now_ms = self._engine.clock.monotonic_ms()
        with self._lock:
            self._refuse(IllegalStateError("the producer is closed"))
            return self._seal_all(now_ms)

    def suspend(self, error: KafkaError) -> None:
        """As `seal_all`, and refuse further records with `error` until `resume`."""
        self.check_not_interrupted()
        now_ms = self._engine.clock.monotonic_ms()
        with self._lock:
            self._suspension = error
            self.slots.clear()
            self._seal_all(now_ms)

    def resume(self) -> None:
        """Take records again."""
        self.check_not_interrupted()
        with self._lock:
            self._suspension = None
            for topic in self.topics.values():
                self._offer(topic)

    def _refuse(self, error: KafkaError) -> None:
        """Refuse records from now on. Called under the lock."""
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
            # Read under the lock: a newer snapshot is applied after this and finds the topic.
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
        if self._refusal is None and self._suspension is None:
            self.slots[topic.name] = topic.slots

    # --- the I/O thread ----------------------------------------------------------------------

    @property
    def incomplete_count(self) -> int:
        """Batches without an outcome; read without the lock."""
        return len(self._incomplete)

    def update_metadata(self, snapshot: ClusterMetadata) -> None:
        """Apply new leaders, new partitions and lost topics."""
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
                # The back-off was for the old leader (KIP-951).
                oldest = queue.waiting[0]
                if oldest.attempts:
                    oldest.due_ms = DUE_NOW
            queue.leader_epoch = epoch
            self._ready.change_leader(queue, leader, now_ms)

    def last_used_ms(self, name: str) -> float:
        """When a topic's last batch was started; infinity while it has one."""
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
        """Take the oldest batch of each ready partition of a node, up to a request's size.

        The batches are sealed and count as on the wire. `may_drain` is called under the lock; a
        partition that it refuses is skipped until `reevaluate`.
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
                    queue.seal()  # before its size is read
                batch_bytes = batch.size_in_bytes
                if drained and size + batch_bytes > max_bytes:
                    break
                self._ready.remove(queue)
                self._put_on_wire(queue, now_ms)
                drained.append(batch)
                size += batch_bytes
            # Only now: a request holds one batch per partition. They go to the end of the line,
            # because the others have waited longer.
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
        self.on_wire_count += 1

    def take_off_wire(self, batches: Iterable[ProducerBatch]) -> None:
        """Take the batches of a finished request off the wire."""
        with self._lock:
            for batch in batches:
                batch.is_on_wire = False
                batch.queue.on_wire.remove(batch)
                self.on_wire_count -= 1

    def put_back(self, batch: ProducerBatch, due_ms: float) -> None:
        """Enqueue a batch again, to be sent from `due_ms` on. Call `reevaluate` afterwards."""
        with self._lock:
            batch.due_ms = due_ms
            batch.queue.put_back(batch)

    def replace(self, batch: ProducerBatch, parts: Sequence[ProducerBatch]) -> None:
        """Enqueue the parts of a split batch in its place. Call `reevaluate` afterwards."""
        with self._lock:
            del self._incomplete[batch]
            for part in parts:
                self._incomplete[part] = None
                batch.queue.put_back(part)

    def complete(self, batches: Iterable[ProducerBatch]) -> None:
        """Forget completed batches, after their callbacks have run."""
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
        """Remove and return the batches whose delivery timeout has passed.

        Those on the wire stay there until their request is done.
        """
        with self._lock:
            expired = self._deadlines.take_expired(now_ms)
            for batch in expired:
                batch.is_abandoned = batch.is_compressing
                self._ready.reevaluate(batch.queue, now_ms)
        return expired

    def take_waiting(self, may_take: MayDrain, now_ms: float) -> list[ProducerBatch]:
        """The batches that wait and that `may_take` accepts: they are in no queue any more."""
        with self._lock:
            taken = [
                batch
                for batch in self._incomplete
                if not (batch.is_on_wire or batch.is_done) and may_take(batch.queue, batch)
            ]
            for batch in taken:
                queue = batch.queue
                if queue.open_batch is batch:
                    queue.seal()
                queue.remove(batch)
                batch.is_abandoned = batch.is_compressing
                self._ready.reevaluate(queue, now_ms)
        return taken

    def take_all(self, refusal: KafkaError) -> list[ProducerBatch]:
        """Remove and return every incomplete batch.

        Later appends raise `refusal`, unless there was one before.
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
