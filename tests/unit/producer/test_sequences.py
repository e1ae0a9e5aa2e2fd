"""The numbering of batches: what may be drained, and what happens to holes."""

from dataclasses import dataclass
from typing import Any

import pytest

from pyclient.producer.sequences import (
    NO_PRODUCER,
    PartitionSequences,
    ProducerIdAndEpoch,
    Sequences,
)


@dataclass(eq=False)
class Batch:
    """The part of a ProducerBatch that the numbering uses; it is its own builder."""

    record_count: int = 10
    number: int | None = None
    is_done: bool = False
    is_on_wire: bool = False
    maybe_written: bool = False
    attempts: int = 0
    on_the_wire_as: Any = None

    @property
    def builder(self):
        return self

    @property
    def next_number(self):
        return self.number + self.record_count

    def set_producer_state(self, producer_id, epoch, base_sequence):
        self.on_the_wire_as = (producer_id, epoch, base_sequence)


class Partition:
    """A partition as the sender would treat it."""

    def __init__(self, sequences):
        self.sequences = sequences
        self.state = PartitionSequences()

    def may_drain(self, batch):
        return self.sequences.may_drain(self.state, batch)

    def drain(self, *batches):
        for batch in batches:
            assert self.may_drain(batch)
            self.sequences.number(self.state, batch)
            batch.is_on_wire = True

    def written(self, batch):
        batch.is_on_wire = False
        self.sequences.written(self.state, batch)
        batch.is_done = True

    def came_back(self, batch, maybe_written=False):
        batch.is_on_wire = False
        batch.attempts += 1
        batch.maybe_written |= maybe_written
        self.sequences.settle(self.state)

    def out_of_order(self, batch):
        batch.is_on_wire = False
        self.sequences.out_of_order(self.state, batch)

    def failed(self, batch):
        batch.is_on_wire = False
        self.sequences.failed(self.state, batch)
        batch.is_done = True

    def expired_on_wire(self, batch):
        self.sequences.failed(self.state, batch)
        batch.is_done = True

    def off_wire_after_expiry(self, batch):
        batch.is_on_wire = False
        self.sequences.abandoned(self.state, batch)


@pytest.fixture
def sequences():
    made = Sequences(in_flight_max=5)
    made.set_identity(77, 0)
    return made


@pytest.fixture
def partition(sequences):
    """A partition where the broker knows this producer: records 0 to 9 are written."""
    partition = Partition(sequences)
    partition.drain(first := Batch())
    partition.written(first)
    return partition


def batches(count):
    return [Batch() for _ in range(count)]


def test_nothing_is_drained_without_a_producer_id():
    assert not Partition(Sequences(5)).may_drain(Batch())


def test_batches_are_numbered_by_their_records(partition):
    one, two = Batch(3), Batch(4)
    partition.drain(one, two)
    assert (one.on_the_wire_as, two.on_the_wire_as) == ((77, 0, 10), (77, 0, 13))


def test_the_first_batch_goes_alone_until_the_broker_knows_the_producer(sequences):
    partition = Partition(sequences)
    partition.drain(first := Batch())
    assert not partition.may_drain(Batch())
    partition.written(first)
    assert partition.may_drain(Batch())


def test_partitions_are_numbered_each_for_itself(sequences, partition):
    other = Partition(sequences)
    partition.drain(Batch())
    batch = Batch()
    other.drain(batch)
    assert batch.on_the_wire_as == (77, 0, 0)


def test_numbers_wrap_on_the_wire_as_in_kafka(partition):
    partition.state.next_number = 2**31 - 4
    one, two = Batch(), Batch()
    partition.drain(one, two)
    assert (one.on_the_wire_as[2], two.on_the_wire_as[2]) == (2**31 - 4, 6)
    partition.written(one)
    partition.out_of_order(two)  # the broker lost its place: it was the next one
    assert partition.state.identity.epoch == 1


def test_a_partition_has_five_unfinished_batches_at_most(partition):
    five = batches(5)
    partition.drain(*five)
    assert not partition.may_drain(Batch())
    partition.written(five[0])
    assert partition.may_drain(Batch())


def test_batches_are_sent_again_one_after_the_other_and_keep_their_numbers(partition):
    one, two, three = batches(3)
    partition.drain(one, two, three)
    for batch in (one, two, three):
        partition.came_back(batch)
    assert [partition.may_drain(batch) for batch in (one, two, three)] == [True, False, False]
    partition.drain(one)
    assert not partition.may_drain(two)
    partition.written(one)
    partition.drain(two)
    assert two.on_the_wire_as == (77, 0, 20)


def test_nothing_new_gets_between_a_batch_and_its_retry(partition):
    one, two = batches(2)
    partition.drain(one, two)
    partition.came_back(one)
    partition.written(two)
    partition.drain(one)
    assert not partition.may_drain(Batch())
    partition.written(one)
    assert partition.may_drain(Batch())


def test_what_follows_a_batch_that_is_sent_again_is_just_sent_again(partition):
    one, two = batches(2)
    partition.drain(one, two)
    partition.came_back(one)
    partition.out_of_order(two)  # of course: one has not been written
    assert partition.state.identity == (77, 0)
    partition.drain(one)
    partition.written(one)
    partition.drain(two)
    assert two.on_the_wire_as == (77, 0, 20)


def test_a_batch_that_was_certainly_not_written_leaves_a_hole_and_the_rest_is_renumbered(partition):
    one, two, three = batches(3)
    partition.drain(one, two, three)
    partition.failed(one)
    assert not partition.may_drain(Batch())
    partition.out_of_order(two)
    assert two.number == 20  # three is still on the wire, with an answer about its old number
    partition.out_of_order(three)
    assert [two.number, three.number] == [0, 10]
    partition.drain(two)
    assert two.on_the_wire_as == (77, 1, 0)
    partition.written(two)
    partition.drain(three)
    assert three.on_the_wire_as == (77, 1, 10)


def test_a_batch_before_a_hole_keeps_its_number_until_it_has_its_outcome(partition):
    maybe_written, refused, behind = Batch(), Batch(), Batch()
    partition.drain(maybe_written, refused, behind)
    number = maybe_written.number
    partition.came_back(maybe_written, maybe_written=True)
    partition.failed(refused)
    partition.came_back(behind)
    assert not partition.may_drain(behind)
    partition.drain(maybe_written)  # the broker recognizes it by its number
    assert maybe_written.number == number
    partition.written(maybe_written)
    partition.drain(behind)
    assert behind.number == 0


def test_a_hole_in_one_partition_leaves_the_others_their_numbers(sequences, partition):
    other = Partition(sequences)
    other.drain(busy := Batch())
    partition.drain(bad := Batch())
    partition.failed(bad)
    assert sequences.identity == ProducerIdAndEpoch(77, 1)
    # The other partition goes over to the new epoch when nothing of the old one is unfinished.
    new = Batch()
    assert not other.may_drain(new)
    other.written(busy)
    other.drain(new)
    assert new.on_the_wire_as == (77, 1, 0)


def test_two_partitions_with_holes_of_the_same_epoch_share_the_next_one(sequences, partition):
    other = Partition(sequences)
    bad, worse = batches(2)
    partition.drain(bad)
    other.drain(worse)
    partition.failed(bad)
    other.failed(worse)
    assert sequences.identity.epoch == 1


class TestUnresolved:
    """The first batch's time runs out while it is on the wire."""

    @pytest.fixture
    def expired(self, partition):
        batch = Batch()
        partition.drain(batch)
        return batch

    def test_nothing_new_is_numbered(self, partition, expired):
        partition.expired_on_wire(expired)
        assert not partition.may_drain(Batch())

    def test_a_late_acknowledgement_resolves_it(self, partition, expired):
        partition.expired_on_wire(expired)
        partition.written(expired)
        partition.drain(batch := Batch())
        assert batch.on_the_wire_as == (77, 0, 20)

    def test_without_an_answer_and_with_nothing_behind_it_the_epoch_is_bumped(
        self, partition, expired
    ):
        partition.expired_on_wire(expired)
        partition.off_wire_after_expiry(expired)
        partition.drain(batch := Batch())
        assert batch.on_the_wire_as == (77, 1, 0)

    def test_a_later_batch_that_is_written_resolves_it(self, partition, expired):
        partition.drain(later := Batch())
        partition.expired_on_wire(expired)
        partition.off_wire_after_expiry(expired)
        partition.written(later)
        partition.drain(batch := Batch())
        assert batch.on_the_wire_as == (77, 0, 30)

    def test_the_next_batch_being_out_of_order_proves_it_lost(self, partition, expired):
        partition.drain(later := Batch())
        partition.expired_on_wire(expired)
        partition.off_wire_after_expiry(expired)
        partition.out_of_order(later)
        partition.drain(later)
        assert later.on_the_wire_as == (77, 1, 0)

    def test_a_batch_further_behind_being_out_of_order_proves_nothing(self, partition, expired):
        next_one, later = batches(2)
        partition.drain(next_one, later)
        partition.expired_on_wire(expired)
        partition.off_wire_after_expiry(expired)
        partition.came_back(next_one)
        partition.out_of_order(later)
        assert later.number == 30
        partition.drain(next_one)
        partition.written(next_one)  # so the expired one was written
        partition.drain(later)
        assert later.on_the_wire_as == (77, 0, 30)

    def test_the_same_if_it_expires_while_it_waits_to_be_sent_again(self, partition, expired):
        partition.came_back(expired, maybe_written=True)
        partition.failed(expired)
        assert partition.may_drain(Batch())
        assert partition.state.identity.epoch == 1

    def test_a_batch_behind_it_that_waits_is_sent_again_while_it_is_still_on_the_wire(
        self, partition, expired
    ):
        partition.drain(later := Batch())
        partition.expired_on_wire(expired)
        partition.came_back(later)
        assert partition.may_drain(later)


def test_a_broker_that_lost_its_place_makes_the_next_batch_start_over(partition):
    partition.drain(one := Batch())
    partition.out_of_order(one)
    partition.drain(one)
    assert one.on_the_wire_as == (77, 1, 0)


def test_an_unknown_producer_id_starts_over(sequences, partition):
    partition.drain(one := Batch())
    one.is_on_wire = False
    sequences.start_over(partition.state)
    partition.drain(one)
    assert one.on_the_wire_as == (77, 1, 0)


def test_when_the_epochs_are_used_up_another_id_is_needed(sequences, partition):
    sequences.set_identity(77, 2**15 - 1)
    partition.drain(first := Batch())
    partition.written(first)
    one, two = batches(2)
    partition.drain(one, two)
    partition.failed(one)
    partition.out_of_order(two)
    assert sequences.identity == NO_PRODUCER
    assert not partition.may_drain(two)
    sequences.set_identity(78, 0)
    partition.drain(two)
    assert two.on_the_wire_as == (78, 0, 0)


def test_the_parts_of_a_split_batch_carry_its_numbers(sequences, partition):
    whole, behind = batches(2)
    partition.drain(whole, behind)
    whole.is_on_wire = False
    parts = [Batch(6), Batch(4)]
    parts[0].number, parts[1].number = 10, 16
    sequences.replaced(partition.state, whole, parts)
    partition.out_of_order(behind)
    partition.drain(parts[0])
    assert not partition.may_drain(parts[1])
    partition.written(parts[0])
    partition.drain(parts[1])
    assert parts[1].on_the_wire_as == (77, 0, 16)
    partition.written(parts[1])
    partition.drain(behind)
    assert behind.on_the_wire_as == (77, 0, 20)
