"""One record at a time: the position is always behind the last one that was handed out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyclient.consumer.fetch.collector import CollectedRecords
from pyclient.consumer.fetch.completed_fetch import CompletedFetch
from pyclient.consumer.iteration import RecordIterator
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.types import TopicPartition
from tests.support.consumer_parts import batch_at, epoch_of, started

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


class World:
    def __init__(self):
        self.subscription = started(SubscriptionState(OffsetReset.LATEST), {P0: 0, P1: 0})
        self.iterator = RecordIterator(self.subscription)
        self.iterator.on_empty(self.refill)

    def refill(self):
        self.iterator.begin_refill()
        self.iterator.prune()
        if not self.iterator.open_next():
            raise StopIteration

    def feed(self, partition, first, count, *, next_offset=None):
        at = epoch_of(self.subscription, partition)
        data = batch_at(first, [b"%d" % (first + index) for index in range(count)])
        records = CompletedFetch(at, first, memoryview(data)).read(count)
        end = first + count if next_offset is None else next_offset
        self.iterator.feed([CollectedRecords(at, records, end, 4)])

    def take(self, count):
        taken = [next(self.iterator.cursor, None) for _ in range(count)]
        return [None if one is None else (one.partition, one.offset) for one in taken]

    def positions(self):
        self.iterator.settle()
        return self.subscription.position(P0), self.subscription.position(P1)


@pytest.fixture
def world(twin):
    return World()


def test_records_come_in_order_and_then_none(world):
    world.feed(P0, 0, 2)
    world.feed(P1, 0, 1)
    assert world.take(4) == [(0, 0), (0, 1), (1, 0), None]


def test_the_position_follows_what_was_handed_out(world):
    world.feed(P0, 0, 3)
    world.feed(P1, 0, 2)
    world.take(2)
    assert world.positions() == (2, 0)
    world.take(2)
    assert world.positions() == (3, 1)


def test_behind_the_last_record_the_position_is_that_of_the_batch(world):
    world.feed(P0, 0, 2, next_offset=9)  # the rest was a control batch
    world.take(1)
    assert world.positions() == (1, 0)
    world.take(1)
    assert world.positions() == (9, 0)


def test_a_rewind_brings_back_what_was_not_handed_out(world):
    world.feed(P0, 0, 3)
    world.feed(P1, 0, 2)
    world.take(1)
    world.iterator.rewind()
    assert world.take(1) == [None]
    assert world.positions() == (1, 0)
    assert {target.partition: target.fetch_offset for target in world.subscription.fetchable()} == {
        P0: 1,
        P1: 0,
    }


def test_a_rewind_of_one_partition_keeps_the_others(world):
    world.feed(P0, 0, 3)
    world.feed(P1, 0, 2)
    world.take(1)
    world.iterator.rewind([P0])
    assert world.take(3) == [(1, 0), (1, 1), None]
    assert world.positions() == (1, 2)


def test_a_rewind_with_nothing_left_changes_nothing(world):
    world.feed(P0, 0, 2)
    world.take(2)
    before = epoch_of(world.subscription, P0)
    world.iterator.rewind()
    assert world.subscription.is_current(before)
    assert world.positions() == (2, 0)


def test_records_of_an_earlier_epoch_are_pruned(world):
    world.feed(P0, 0, 3)
    world.feed(P1, 0, 2)
    world.take(1)
    world.iterator.settle()
    world.subscription.seek(P0, 50)
    world.iterator.prune()
    assert world.take(2) == [(1, 0), (1, 1)]
    assert world.positions() == (50, 2)


@given(sizes=st.lists(st.integers(1, 4), max_size=5), taken=st.integers(0, 20))
def test_the_position_is_always_the_number_of_records_taken(sizes, taken):
    world = World()
    first = 0
    for size in sizes:
        world.feed(P0, first, size)
        first += size
    got = [one for one in world.take(taken) if one is not None]
    assert world.positions()[0] == len(got) == min(taken, sum(sizes))
    world.iterator.rewind()
    assert world.positions()[0] == len(got)
