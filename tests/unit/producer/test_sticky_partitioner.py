"""The partition of records without a key, by KIP-794."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyclient.entropy import Entropy
from pyclient.producer.sticky_partitioner import QueueSizes, StickyPartitioner


def queue_sizes(*sizes):
    made = QueueSizes()
    made.add_partitions(len(sizes))
    for partition, size in enumerate(sizes):
        for _ in range(size):
            made.grow(partition)
    return made


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=200))
def test_the_extremes_of_the_queue_sizes_are_right_after_any_history(history):
    sizes = queue_sizes(0, 0, 0, 0, 0)
    for grows, partition in history:
        if grows:
            sizes.grow(partition)
        elif sizes.sizes[partition]:
            sizes.shrink(partition)
        assert (sizes.low, sizes.high) == (min(sizes.sizes), max(sizes.sizes))


def test_new_partitions_have_empty_queues():
    sizes = queue_sizes(3, 3)
    sizes.add_partitions(2)
    assert (sizes.sizes, sizes.low, sizes.high) == ([3, 3, 0, 0], 0, 3)
    sizes.shrink(0)
    assert (sizes.low, sizes.high) == (0, 3)


def test_the_sticky_partition_stays_until_enough_bytes_went_to_it():
    sticky = StickyPartitioner(Entropy(1), 100, queue_sizes(*[0] * 50), range(50))
    first = sticky.partition
    assert not sticky.switch_after(99)
    assert sticky.partition == first
    assert sticky.switch_after(100)
    assert sticky.partition != first


def test_the_sticky_partition_has_a_leader_if_any_has():
    sizes = queue_sizes(0, 0, 0)
    sticky = StickyPartitioner(Entropy(1), 1, sizes, (1,))
    assert sticky.partition == 1
    sticky.update((), 3)
    chosen = set()
    for _ in range(100):
        sticky.switch_after(1)
        chosen.add(sticky.partition)
    assert chosen == {0, 1, 2}


@pytest.mark.parametrize(
    ("leaders", "partitions"),
    [((0, 1), 2), ((0, 1, 2), 4), ((), 3)],
    ids=["the topic has become smaller", "it has lost its leader", "no leader, and no such one"],
)
def test_the_sticky_partition_is_left_where_nothing_can_be_sent_to(leaders, partitions):
    sticky = StickyPartitioner(Entropy(1), 1000, queue_sizes(0, 0, 0, 0), (3,))
    assert sticky.partition == 3
    assert sticky.update(leaders, partitions)
    assert sticky.partition < 3
    assert not sticky.update(leaders, partitions)


def test_longer_queues_are_chosen_less_often_by_the_weights_of_kip_794():
    sticky = StickyPartitioner(Entropy(1), 1, queue_sizes(0, 3, 1), range(3))
    chosen = Counter()
    for _ in range(7000):
        sticky.switch_after(1)
        chosen[sticky.partition] += 1
    # The weights are 4, 1 and 3, each the longest queue plus one less the queue.
    assert chosen[0] == pytest.approx(3500, rel=0.1)
    assert chosen[1] == pytest.approx(875, rel=0.2)
    assert chosen[2] == pytest.approx(2625, rel=0.1)


def test_choosing_ends_even_if_all_candidates_are_bad():
    # The only leader's queue is the longest; the empty ones have no leader.
    sticky = StickyPartitioner(Entropy(1), 1, queue_sizes(0, 1000, 0, 1000), (1, 3))
    assert sticky.partition in (1, 3)
