"""Idempotence: the producer's id and epoch, and the numbering of each partition's batches.

The broker accepts a partition's batches only in the order of their numbers, and drops those it
has already. That holds as long as no number is missing: a batch that failed for good leaves a
hole, and the batches after it are renumbered from 0 in a higher epoch.

- A batch that the broker certainly does not have leaves a hole at once.
- A batch whose fate is unknown (time ran out while it was on its way) is *unresolved*. Nothing
  new is numbered until those behind it have their outcome: if one succeeded, the batch was
  written; if the next one is out of order, or all of them are gone, it was not.
- A batch before the hole keeps its number, and is sent again with it until it has its outcome:
  the broker may have it, and would not know it again under another number.
- Renumbering waits until nothing of the partition is on the wire, so that every answer is
  about the numbers that the batch has now.

The epoch is the producer's, as in Kafka; a partition takes up a new one when it has nothing
unfinished. The I/O thread owns everything here.
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
        identity: in whose name its batches are numbered.
        next_number: of the next batch that gets one. It never wraps here; on the wire it does.
        last_acked: the number of the last record that is certainly written.
        unfinished: the batches with a number that wait or are on the wire, in order. One that
            failed while on the wire stays until its request is over.
        unresolved_until: behind the last batch whose fate is unknown; None if there is none.
        hole: the first number that is missing; the unfinished batches from there on have to be
            renumbered, once those before it have their outcome. None if none is missing.
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
        """Renumber the unfinished batches from 0; none of them is on the wire."""
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
        """Whether the broker has a batch of this producer, and so checks what follows.

        From a producer that it does not know it takes any number: if the first batch failed and
        the second one did not, the first could never be written. So the first one goes alone.
        """
        return self.last_acked >= 0

    @property
    def is_retrying(self) -> bool:
        """Whether a batch is being sent again.

        The broker may have it already, and knows it again only as long as it is among the last
        five: so nothing new gets in between.
        """
        return any(batch.attempts for batch in self.unfinished)

    @property
    def is_on_wire(self) -> bool:
        """Whether an answer about numbers of this partition may still come."""
        return any(batch.is_on_wire for batch in self.unfinished)

    @property
    def waits_before_hole(self) -> bool:
        """Whether a batch before the hole has no outcome yet.

        The broker may have it: with another number it would write it twice.
        """
        return any(not self.is_to_be_renumbered(batch) for batch in self.unfinished)

    def is_to_be_renumbered(self, batch: ProducerBatch) -> bool:
        """Whether a number before this batch is missing, so that it has to wait for another."""
        return self.hole is not None and (batch.number is None or batch.number >= self.hole)

    def miss(self, number: int) -> None:
        """This number will never be written."""
        self.hole = number if self.hole is None else min(self.hole, number)

    def is_next(self, batch: ProducerBatch) -> bool:
        """Whether nothing is missing between what is written and this batch."""
        return batch.number == self.last_acked + 1

    def is_overtaken(self, batch: ProducerBatch) -> bool:
        """Whether a later batch is written, so that the broker no longer accepts this number.

        Usually because it is written too, and too long ago for the broker to know it again; but
        a broker that has forgotten the producer takes a later batch without an earlier one.
        """
        return batch.number is not None and batch.number <= self.last_acked

    def is_first_unfinished(self, batch: ProducerBatch) -> bool:
        """Whether all batches before this one have their outcome."""
        for other in self.unfinished:
            if not other.is_done:
                return other is batch
        return False


class Sequences:
    """The numbering of all partitions of an idempotent producer."""

    def __init__(self, in_flight_max: int) -> None:
        """Without an id yet.

        Args:
            in_flight_max: how many unfinished batches a partition may have; the broker
                remembers that many to tell a duplicate from an error.
        """
        self.identity = NO_PRODUCER
        self._in_flight_max = in_flight_max
        # Partitions with a hole that wait for the wire to clear, or for a new producer id.
        self._holes: dict[PartitionSequences, None] = {}

    @property
    def has_identity(self) -> bool:
        """Whether batches can be numbered; if not, an InitProducerId request is due."""
        return self.identity.producer_id >= 0

    def set_identity(self, producer_id: int, epoch: int) -> None:
        """Use the id and epoch that the broker assigned."""
        self.identity = ProducerIdAndEpoch(producer_id, epoch)
        for partition in list(self._holes):
            self.settle(partition)

    def may_drain(self, partition: PartitionSequences, batch: ProducerBatch) -> bool:
        """Whether the oldest waiting batch of a partition may go on the wire."""
        if not self.has_identity or partition.is_to_be_renumbered(batch):
            return False
        if batch.number is not None:
            # Sent again, and then alone until it has its outcome: what follows would only be
            # out of order if it failed once more.
            return partition.is_first_unfinished(batch)
        if partition.unresolved_until is not None or partition.is_retrying:
            return False
        if partition.identity != self.identity or not partition.is_known:
            return not partition.unfinished
        return len(partition.unfinished) < self._in_flight_max

    def number(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        """Number a batch that is about to go on the wire, and write it into the batch."""
        if batch.number is None:
            if partition.identity != self.identity:
                partition.restart(self.identity)
            batch.number = partition.next_number
            partition.next_number += batch.record_count
            partition.unfinished.append(batch)
        batch.builder.set_producer_state(*partition.identity, batch.number & _SEQUENCE_MASK)

    def written(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        """The broker has the batch; it is off the wire, and may have failed here before."""
        last_number = batch.next_number - 1
        if last_number > partition.last_acked:
            partition.last_acked = last_number
        self._remove(partition, batch)

    def failed(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        """The batch failed for good; one that is on the wire stays until it is off."""
        if batch.number is None:
            return
        if batch.maybe_written or batch.is_on_wire:
            partition.unresolved_until = max(partition.unresolved_until or 0, batch.next_number)
        else:
            partition.miss(batch.number)
        if not batch.is_on_wire:
            self._remove(partition, batch)

    def abandoned(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        """A batch that failed while on the wire is off it, with an unknown outcome."""
        self._remove(partition, batch)

    def out_of_order(self, partition: PartitionSequences, batch: ProducerBatch) -> None:
        """The broker misses a number before this batch, which is to be sent again.

        Usually an earlier one that will be sent again too. If there is none to wait for, the
        number will never come: the unresolved batch was lost, or the broker forgot.
        """
        if partition.unresolved_until is None:
            lost = partition.is_next(batch)
        else:
            lost = batch.number == partition.unresolved_until
        if lost and batch.number is not None:
            partition.miss(batch.number)
        self.settle(partition)

    def start_over(self, partition: PartitionSequences) -> None:
        """The broker forgot the producer: renumber the batches that are sent again."""
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
        if unfinished and unfinished[0] is batch:  # as it is while nothing fails
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
            self._bump_epoch()
        if self.has_identity:
            del self._holes[partition]
            partition.restart(self.identity)

    def _bump_epoch(self) -> None:
        producer_id, epoch = self.identity
        if epoch < _EPOCH_MAX:
            self.identity = ProducerIdAndEpoch(producer_id, epoch + 1)
        else:
            self.identity = NO_PRODUCER  # the epochs of this id are used up: ask for another
