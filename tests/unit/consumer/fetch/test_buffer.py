"""The fetch buffer: order, bytes, and who is woken."""

import pytest

from pyclient.consumer.fetch.buffer import FetchBuffer
from pyclient.consumer.fetch.completed_fetch import CompletedFetch, ResponseMemory
from pyclient.consumer.partition_state import PartitionEpoch
from pyclient.types import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def fetch(partition, size):
    return CompletedFetch(PartitionEpoch(partition, 1), 0, memoryview(bytes(size)))


@pytest.fixture
def bells():
    return []


@pytest.fixture
def buffer(bells):
    return FetchBuffer(100, lambda: bells.append("ring"))


def test_fetches_come_out_in_the_order_they_came_in(buffer, bells):
    first, second = fetch(P0, 10), fetch(P1, 10)
    buffer.put([first, second])
    assert bells == ["ring"]
    assert buffer.first() is first
    assert buffer.first() is first
    buffer.remove(first)
    assert buffer.first() is second


def test_resting_partitions_are_passed_over_and_keep_their_place(buffer):
    first, second = fetch(P0, 10), fetch(P1, 10)
    buffer.put([first, second])
    assert buffer.first({P0}) is second
    assert buffer.first({P0, P1}) is None
    assert buffer.first() is first


def test_there_is_room_below_the_limit_only(buffer):
    buffer.put([fetch(P0, 60)])
    assert buffer.has_room()
    second = fetch(P1, 40)
    buffer.put([second])
    assert not buffer.has_room()
    buffer.remove(second)
    assert buffer.has_room()


def test_a_response_counts_until_its_last_fetch_is_removed(buffer):
    response = ResponseMemory(100)
    first, second = (
        CompletedFetch(PartitionEpoch(one, 1), 0, memoryview(bytes(10)), response=response)
        for one in (P0, P1)
    )
    buffer.put([first, second])
    assert buffer.size == 100
    buffer.remove(first)
    assert buffer.size == 100  # the second one keeps all of it in memory
    buffer.remove(second)
    assert buffer.size == 0


def test_clear_lets_everything_go(buffer):
    buffer.put([fetch(P0, 100)])
    buffer.clear()
    assert buffer.has_room()
    assert buffer.first() is None
    assert len(buffer) == 0
