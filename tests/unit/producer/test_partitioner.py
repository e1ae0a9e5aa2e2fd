"""Which partition a record goes to."""

import pytest

from pyclient.metadata import ClusterMetadata
from pyclient.producer.partitioner import (
    DefaultPartitioner,
    Partitioner,
    RoundRobinPartitioner,
    custom_partitioner,
    partition_for_key,
)
from tests.support.fake_engine import topic_metadata


def cluster(*leaders):
    return ClusterMetadata(version=1, topics={"orders": topic_metadata("orders", leaders)})


@pytest.mark.parametrize(
    ("key", "java_hash"),  # of the tests of Kafka's Java client
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"abc", 479470107),
    ],
)
def test_a_key_goes_where_javas_producer_sends_it(twin, key, java_hash):
    assert partition_for_key(key, 1000) == (java_hash & 0x7FFFFFFF) % 1000


def test_a_key_given_as_a_view_goes_to_the_same_partition(twin):
    key = b"table-7"
    assert partition_for_key(memoryview(key), 97) == partition_for_key(key, 97)


def test_no_partitioner_means_the_default_rules():
    assert custom_partitioner(None) is None


def test_a_partitioner_of_kafka_python_2_gets_key_all_and_available():
    calls = []

    def choose(key, all_partitions, available):
        calls.append((key, all_partitions, available))
        return 2

    partition = custom_partitioner(choose)
    assert partition("orders", "k", b"k", "v", b"v", cluster(1, -1, 1)) == 2
    assert calls == [(b"k", [0, 1, 2], [0, 2])]


def test_a_partitioner_of_kafka_python_3_gets_everything():
    class Last(Partitioner):
        def partition(self, topic, key, serialized_key, value, serialized_value, cluster):
            assert (key, serialized_key, value, serialized_value) == ("k", b"k", "v", b"v")
            return max(cluster.partitions_for_topic(topic))

    assert custom_partitioner(Last())("orders", "k", b"k", "v", b"v", cluster(1, 1, 1)) == 2


def test_the_default_partitioner_hashes_keys_and_draws_among_those_with_a_leader():
    default = DefaultPartitioner()
    known = cluster(1, -1, 1)
    assert default.partition("orders", None, b"foobar", None, None, known) == partition_for_key(
        b"foobar", 3
    )
    drawn = {default.partition("orders", None, None, None, b"v", known) for _ in range(100)}
    assert drawn == {0, 2}


def test_round_robin_takes_the_partitions_with_a_leader_in_turn():
    robin = RoundRobinPartitioner()
    known = cluster(1, -1, 1)
    chosen = [robin.partition("orders", None, b"k", None, b"v", known) for _ in range(4)]
    assert chosen == [0, 2, 0, 2]


@pytest.mark.parametrize("partitioner", [DefaultPartitioner(), RoundRobinPartitioner()])
def test_a_partitioner_says_that_it_does_not_know_the_topic(partitioner):
    with pytest.raises(ValueError, match="'tea' is not in the metadata"):
        partitioner.partition("tea", None, None, None, b"v", cluster(1))
