"""The callers' half of the accumulator: a record into its partition's open batch, or a new one.

The thread that finds a batch full seals it, and compresses it where records are compressed. Memory
is allocated outside the lock, because the I/O thread needs it to bring memory back; then the append
looks again.

A signal handler may interrupt the main thread anywhere in here, and raise (Ctrl-C does). Hence the
order of the steps under the lock: whatever was left half done, the next to meet it completes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import copy
from threading import get_ident
from typing import TYPE_CHECKING, TypeAlias

from pyclient import _twin
from pyclient.errors import BufferExhaustedError, KafkaError
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


class RecordAppends:
    """Appends to the queues of partitions; `RecordAccumulator` has the other half."""

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
        self._compressors: set[int] = set()  # the threads that are at it
        self._refusal: KafkaError | None = None  # why no more records are taken

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
        """Add as many rows as go into the open batch; None where there is no room, or no batch.

        Then the next row is to be given to `append`, which makes room or waits for it.
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
            self._pool.release(started.take_buffers())  # nobody else knows of it
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
            # Sealed, and open nonetheless: whoever was about to seal it was interrupted.
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
        """Every step may be done twice."""
        batch.queue.topic.used_ms = now_ms
        self._incomplete[batch] = None
        batch.queue.push(batch)
        self._deadlines.watch(batch)
        self._ready.evaluate(batch.queue, now_ms)

    def _compress(self, batch: ProducerBatch) -> None:
        """Close a full batch here, so that the I/O thread need not: another core is free for it."""
        try:
            batch.compress(self._pool)
        except Exception:  # the I/O thread tries again, and has ways to fail a batch
            log.debug("A full batch could not be compressed", exc_info=True)
        finally:
            self._end_compressing(batch)

    def _end_compressing(self, batch: ProducerBatch) -> None:
        """Let the batch be sent, whatever has become of the attempt."""
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
