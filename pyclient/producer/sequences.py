"""Idempotence: the producer's id and epoch, and the sequence numbers of each partition's batches.

The broker accepts a partition's batches only in the order of their numbers, and drops
duplicates. If a batch fails for good, its numbers are missing: this is a *hole*, and the batches
after it are renumbered from 0 in a higher epoch.

- A batch that was certainly not written leaves a hole at once.
- A batch whose outcome is unknown (it timed out in flight) is *unresolved*. No new batch is
  numbered until the batches after it are done: if one of them succeeded, the batch was written;
  if the next one was out of order, or all of them failed, it was not.
- A batch before the hole keeps its number and is retried with it until it is done: the broker
  may have it, and would not recognize it under another number.
- Renumbering waits until no batch of the partition is in flight, so that every response refers
  to the current numbers.

The epoch belongs to the producer, as in Kafka; a partition switches to a new one when it has no
unfinished batches. A transactional producer gets its epochs from the coordinator: after a hole, the
partition sends nothing until the transaction has ended with a new epoch. Owned by the I/O thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pyclient.producer.producer_batch import ProducerBatch

_EPOCH_MAX: Final = 2**15 - 1
_SEQUENCE_MASK: Final = 2**31 - 1


class ProducerIdAndEpoch(NamedTuple):
    """The producer's id and epoch."""

    producer_id: int
    epoch: int


NO_PRODUCER: Final = ProducerIdAndEpoch(-1, -1)


class PartitionSequences:
    """The numbering of one partition.

    Attributes:
        identity: the producer id and epoch of its batches.
        next_number: the next batch's first number. It never wraps here; on the wire it does.
        last_acked: the number of the last record that is known to be written.
        unfinished: the numbered batches that wait or are in flight, in order. One that failed in
            flight stays until its request is done.
        unresolved_until: the number after the last unresolved batch; None if there is none.
        hole: the first missing number, or None. The unfinished batches from there on are
            renumbered once those before it are done.
    """

    __slots__ = (
        "hole",
        "identity",
        "last_acked",
        "next_number",
        "unfinished",
        "unresolved_until",
    )

    def __init__(self) -> None:
        self.unfinished: list[ProducerBatch] = []
        self.restart(NO_PRODUCER)

    def restart(self, identity: ProducerIdAndEpoch) -> None:
        """Renumber the unfinished batches from 0; none of them may be in flight."""
        self.identity = identity
        self.next_number = 0
        self.last_acked = -1
        self.unresolved_until: int | None = None
        self.hole: int | None = None
        for batch in self.unfinished:
            batch.number = self.next_number
            self.next_number += batch.record_count

    @property
    def is_known(self) -> bool:
        """Whether the broker has a batch of this producer, and so checks the numbers.

        It accepts any first number from an unknown producer: if the first batch failed and the
        second one did not, the first could never be written. So the first one is sent alone.
        """
        return self.last_acked >= 0

    @property
    def is_retrying(self) -> bool:
        """Whether a batch is being retried.

        The broker may have it already, and recognizes it only among the last five batches: so no
        new batch may be sent before it is done.
        """
        return any(batch.attempts for batch in self.unfinished)

    @property
    def is_on_wire(self) -> bool:
        """Whether a response about this partition's numbers may still arrive."""
        return any(batch.is_on_wire for batch in self.unfinished)

    @property
    def waits_before_hole(self) -> bool:
        """Whether a batch before the hole is not done yet.

        The broker may have it, and would write it again under another number.
        """
        return any(not self.is_to_be_renumbered(batch) for batch in self.unfinished)

    def is_to_be_renumbered(self, batch: ProducerBatch) -> bool:
        """Whether this batch comes after the hole and has to wait for a new number."""
        return self.hole is not None and (batch.number is None or batch.number >= self.hole)

    def miss(self, number: int) -> None:
        """Record that this number will never be written."""
        self.hole = number if self.hole is None else min(self.hole, number)

    def is_next(self, batch: ProducerBatch) -> bool:
        """Whether this batch directly follows the last written record."""
        return batch.number == self.last_acked + 1

    def is_overtaken(self, batch: ProducerBatch) -> bool:
        """Whether a later batch is written, so that the broker no longer accepts this number.

        Usually this batch is written too, too long ago for the broker to recognize it. But a
        broker that has forgotten the producer accepts a later batch without the earlier one.
        """
        return batch.number is not None and batch.number <= self.last_acked

    def is_first_unfinished(self, batch: ProducerBatch) -> bool:
        """Whether all batches before this one are done."""
        for other in self.unfinished:
            if not other.is_done:
                return other is batch
        return False


class Sequences:
    """The numbering of all partitions of an idempotent producer."""

    def __init__(self, in_flight_max: int, *, is_transactional: bool = False) -> None:
        """Start without a producer id.

        Args:
            in_flight_max: how many unfinished batches a partition may have; the broker
                remembers that many to recognize duplicates.
            is_transactional: epochs come from the coordinator.
        """
        self.is_transactional = is_transactional
        self.identity = NO_PRODUCER
        self._in_flight_max = in_flight_max
        # Partitions with a hole that wait for requests in flight, or for a new producer id.
        self._holes: dict[PartitionSequences, None] = {}

    @property
    def has_identity(self) -> bool:
        """Whether batches can be numbered; if not, an InitProducerId request is due."""
        return self.identity.producer_id >= 0

    @property
    def has_holes(self) -> bool:
        """Whether a partition needs another epoch."""
        return bool(self._holes)

    def set_identity(self, producer_id: int, epoch: int) -> None:
        """Use the id and epoch that the broker assigned."""
        self.identity = ProducerIdAndEpoch(producer_id, epoch)
        for partition in list(self._holes):
            self.settle(partition)

    def may_drain(self, partition: PartitionSequences, batch: ProducerBatch) -> bool:
        """Whether the oldest waiting batch of a partition may be sent."""
        if not self.has_identity or partition.is_to_be_renumbered(batch):
            return False
        if batch.number is not None:
            # A retry is sent alone: if it failed again, the batches after it would be out of
            # order.
            return partition.is_first_unfinished(batch)
        if partition.unresolved_until is not None or partition.is_retrying:
            return False
        if partition.identity != self.identity or not partition.is_known:
            return not partition.unfinished
        return len(partition.unfinished) < self._in_flight_max

    def number(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        """Number a batch that is about to be sent, and write the number into its header."""
        if batch.number is None:
            if partition.identity != self.identity:
                partition.restart(self.identity)
            batch.number = partition.next_number
            partition.next_number += batch.record_count
            partition.unfinished.append(batch)
        batch.builder.set_producer_state(*partition.identity, batch.number & _SEQUENCE_MASK)

    def written(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        """The broker has the batch. It is no longer in flight, and may have timed out before."""
        last_number = batch.next_number - 1
        if last_number > partition.last_acked:
            partition.last_acked = last_number
        self._remove(partition, batch)

    def failed(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        """The batch failed for good; one in flight stays until its request is done."""
        if batch.number is None:
            return
        if batch.maybe_written or batch.is_on_wire:
            partition.unresolved_until = max(partition.unresolved_until or 0, batch.next_number)
        else:
            partition.miss(batch.number)
        if not batch.is_on_wire:
            self._remove(partition, batch)

    def abandoned(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        """The request of a batch that had failed in flight is done; its outcome is unknown."""
        self._remove(partition, batch)

    def out_of_order(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        """The broker misses a number before this batch, which will be retried.

        Usually an earlier batch will be retried as well. If there is none, the number will never
        arrive: the unresolved batch was lost, or the broker has forgotten the producer.
        """
        if partition.unresolved_until is None:
            lost = partition.is_next(batch)
        else:
            lost = batch.number == partition.unresolved_until
        if lost and batch.number is not None:
            partition.miss(batch.number)
        self.settle(partition)

    def start_over(self, partition: PartitionSequences) -> None:
        """The broker has forgotten the producer: renumber the batches that are retried."""
        partition.miss(0)
        self.settle(partition)

    def replaced(
        self, partition: PartitionSequences, batch: ProducerBatch, parts: Sequence[ProducerBatch]
    ) -> None:
        """A batch was split; its parts carry its numbers."""
        if batch.number is not None:
            place = partition.unfinished.index(batch)
            partition.unfinished[place : place + 1] = parts

    def _remove(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        unfinished = partition.unfinished
        if unfinished and unfinished[0] is batch:  # the usual case: nothing has failed
            del unfinished[0]
        elif batch in unfinished:
            unfinished.remove(batch)
        self.settle(partition)

    def settle(self, partition: PartitionSequences) -> None:
        """Start the renumbering if it is due. Called after every outcome."""
        if partition.unresolved_until is not None and not partition.unfinished:
            if partition.next_number != partition.last_acked + 1:
                partition.miss(partition.last_acked + 1)
            partition.unresolved_until = None
        if partition.hole is None:
            return
        self._holes[partition] = None
        if partition.is_on_wire or partition.waits_before_hole:
            return
        if partition.identity == self.identity:
            if self.is_transactional:
                return
            self._bump_epoch()
        if self.has_identity:
            del self._holes[partition]
            partition.restart(self.identity)

    def _bump_epoch(self) -> None:
        producer_id, epoch = self.identity
        if epoch < _EPOCH_MAX:
            self.identity = ProducerIdAndEpoch(producer_id, epoch + 1)
        else:
            self.identity = NO_PRODUCER  # out of epochs: request another id
