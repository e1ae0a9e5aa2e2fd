"""The batches of one partition, and the partitions of one topic.

Plain state of the RecordAccumulator, which guards it with its lock; `sequences` alone belongs to
the I/O thread.
"""

from __future__ import annotations

import math
from collections import deque

from pyclient import _twin
from pyclient.entropy import Entropy
from pyclient.metadata import NO_LEADER, TopicMetadata
from pyclient.producer.producer_batch import ProducerBatch
from pyclient.producer.sequences import PartitionSequences
from pyclient.producer.sticky_partitioner import QueueSizes, StickyPartitioner
from pyclient.types import TopicPartition


class PartitionQueue:
    """One partition's batches, from the oldest to the one that is still open.

    Attributes:
        waiting: not on the wire, in the order of their records.
        open_batch: the last of `waiting` while it takes records, else None.
        slot: the open batch as callers see it who do not take the lock.
        on_wire: in requests under way, failed ones (out of time) among them.
        leader: the node to send to, as the metadata says; -1 if there is none.
        sealed_bytes, sealed_records: of all batches sealed so far: for the sticky partitioner,
            and as the place of the next batch.
        is_ready: listed among the ready partitions of its leader.
        is_blocked: not to be drained before something about its batches on the wire changes.
        timer_ms: when the accumulator looks again at it; infinity if no timer is set.
        is_watched: has a deadline set for its oldest batch.
    """

    __slots__ = (
        "is_blocked",
        "is_ready",
        "is_watched",
        "leader",
        "leader_epoch",
        "on_wire",
        "open_batch",
        "partition",
        "sealed_bytes",
        "sealed_records",
        "sequences",
        "slot",
        "timer_ms",
        "topic",
        "topic_partition",
        "waiting",
    )

    def __init__(self, topic: TopicQueues, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_partition = TopicPartition(topic.name, partition)
        self.waiting: deque[ProducerBatch] = deque()
        self.open_batch: ProducerBatch | None = None
        self.slot = _twin.AppendSlot()
        self.on_wire: list[ProducerBatch] = []
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.sealed_bytes = 0
        self.sealed_records = 0
        self.is_ready = False
        self.is_blocked = False
        self.timer_ms = math.inf
        self.is_watched = False
        self.sequences = PartitionSequences()

    def push(self, batch: ProducerBatch) -> None:
        """Add a new batch at the end, and let it take records."""
        if self.open_batch is batch:
            return  # pushed again after an interrupt
        batch.position = self.sealed_records
        if not (self.waiting and self.waiting[-1] is batch):
            self.waiting.append(batch)
        self.topic.queue_sizes.grow(self.partition)
        self.slot.open(batch.builder, batch.result)
        self.open_batch = batch

    def grown(self, batch: ProducerBatch, buffer_count: int) -> None:
        """A waiting batch got `buffer_count` more buffers."""
        batch.buffer_count += buffer_count
        self.topic.queue_sizes.grow(self.partition, buffer_count)

    def pop(self) -> ProducerBatch:
        """Take the oldest batch that waits."""
        batch = self.waiting.popleft()
        self.topic.queue_sizes.shrink(self.partition, batch.buffer_count)
        return batch

    def remove(self, batch: ProducerBatch) -> None:
        """Take out a batch that waits."""
        self.waiting.remove(batch)
        self.topic.queue_sizes.shrink(self.partition, batch.buffer_count)

    def put_back(self, batch: ProducerBatch) -> None:
        """Insert a batch that is retried, or a part of one that was split.

        In the order of sequence numbers, which is that of the records, and not simply in front:
        batches on the wire fail one after another, and that would turn 1, 2, 3 into 3, 2, 1.
        """
        place = 0
        for other in self.waiting:
            if other.position > batch.position:
                break
            place += 1
        self.waiting.insert(place, batch)
        self.topic.queue_sizes.grow(self.partition, batch.buffer_count)

    def seal(self) -> None:
        """Close the open batch for records, if there is one."""
        batch = self.open_batch
        if batch is not None:
            batch.seal()
            self.sealed_bytes += batch.builder.raw_size
            self.sealed_records += batch.record_count
            self.slot.close()
            self.open_batch = None

    @property
    def appended_bytes(self) -> int:
        """Of all batches so far, the open one included."""
        batch = self.open_batch
        return self.sealed_bytes + (0 if batch is None else batch.builder.raw_size)

    def __repr__(self) -> str:
        return (
            f"<PartitionQueue {self.topic.name}-{self.partition} waiting={len(self.waiting)}"
            f" on_wire={len(self.on_wire)} leader={self.leader}>"
        )


class TopicQueues:
    """A topic's partitions, and where its records without a key go.

    Attributes:
        sticky_queue: of the partition for records without a key.
        slots: the open batches, and the count of partitions as the metadata has it; there are
            more queues if the topic was recreated with fewer.
        batch_max_size: bytes that a batch may grow to.
        used_ms: when a batch was last begun.
        compression_ratio: what is left of a batch's bytes on the wire, as far as is known; 1
            without compression. See `observe_ratio`.
    """

    __slots__ = (
        "_sticky",
        "_sticky_from",
        "batch_max_size",
        "compression_ratio",
        "name",
        "queue_sizes",
        "queues",
        "slots",
        "sticky_queue",
        "used_ms",
    )

    def __init__(
        self, metadata: TopicMetadata, entropy: Entropy, stick_bytes: int, batch_max_size: int
    ) -> None:
        self.name = metadata.name
        self.batch_max_size = batch_max_size
        self.compression_ratio = 1.0
        self.used_ms = -math.inf
        self.queues: list[PartitionQueue] = []
        self.queue_sizes = QueueSizes()
        self.slots = _twin.TopicSlots()
        self._grow(len(metadata.partitions))
        self._sticky = StickyPartitioner(entropy, stick_bytes, self.queue_sizes, metadata.available)
        self._stick_to(self.queues[self._sticky.partition])

    def update(self, metadata: TopicMetadata | None) -> list[tuple[PartitionQueue, int, int]]:
        """Apply new metadata; None if the topic is no longer known.

        Returns the partitions whose leader changed, or is the same in another epoch, with both.
        """
        if metadata is not None:
            self._grow(len(metadata.partitions))
            if self._sticky.update(metadata.available, len(metadata.partitions)):
                self._stick_to(self.queues[self._sticky.partition])
        known = () if metadata is None else metadata.partitions
        changed = []
        for queue in self.queues:
            # A topic that was deleted and made again may have fewer partitions than before.
            found = known[queue.partition] if queue.partition < len(known) else None
            leader, epoch = (NO_LEADER, -1) if found is None else (found.leader, found.leader_epoch)
            if (leader, epoch) != (queue.leader, queue.leader_epoch):
                changed.append((queue, leader, epoch))
        return changed

    def leave_sticky_queue(self) -> bool:
        """Choose another sticky partition if this one got enough bytes. Between two batches.

        Tells whether `sticky_queue` is another one now.
        """
        before = self.sticky_queue
        if self._sticky.switch_after(before.appended_bytes - self._sticky_from):
            self._stick_to(self.queues[self._sticky.partition])
        return self.sticky_queue is not before

    def observe_ratio(self, ratio: float) -> None:
        """A batch was compressed to this part of its size. The I/O thread.

        A worse ratio counts at once, or batches would become too large; a better one by a
        quarter, for it may have been luck.
        """
        better = self.compression_ratio - ratio
        self.compression_ratio -= better / 4 if better > 0 else better

    def refuse_growth(self, batch_size: int) -> None:
        """Stop batches from growing: the broker found one too large. The I/O thread."""
        self.batch_max_size = min(self.batch_max_size, batch_size)
        self.compression_ratio = max(self.compression_ratio, 1.0)

    @property
    def is_empty(self) -> bool:
        """Whether no batch waits or is on the wire."""
        return not any(queue.waiting or queue.on_wire for queue in self.queues)

    @property
    def partition_count(self) -> int:
        """How many partitions there are, as the metadata has it."""
        return self.slots.partition_count

    def _stick_to(self, queue: PartitionQueue) -> None:
        self.sticky_queue = queue
        self._sticky_from = queue.appended_bytes
        self.slots.sticky = queue.slot

    def _grow(self, count: int) -> None:
        first = len(self.queues)
        if count > first:
            self.queues.extend(PartitionQueue(self, index) for index in range(first, count))
            self.queue_sizes.add_partitions(count - first)
            for queue in self.queues[first:]:
                self.slots.add(queue.slot)
        # Last, for callers without the lock look for as many slots.
        self.slots.partition_count = count
