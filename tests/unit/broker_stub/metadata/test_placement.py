"""Where the replicas of new partitions go."""

from itertools import islice

import pytest

from broker_stub.metadata.image import ClusterImage
from broker_stub.metadata.placement import place, spread
from pyclient.error_codes import InvalidReplicationFactorError
from pyclient.protocol.messages.metadata_records import PartitionRecord, TopicRecord


def test_leaders_go_round_from_the_start():
    placed = place([1, 2, 3], partitions=6, replication_factor=1, start=1)
    assert placed == [(2,), (3,), (1,), (2,), (3,), (1,)]


def test_followers_shift_with_every_round():
    placed = place([0, 1, 2, 3, 4], partitions=10, replication_factor=3, start=0)
    assert placed[0] == (0, 1, 2)
    assert placed[5] == (0, 2, 3)
    assert placed[9] == (4, 1, 2)


@pytest.mark.parametrize("brokers", range(1, 6))
def test_replicas_are_distinct_and_evenly_spread(brokers):
    for factor in range(1, brokers + 1):
        placed = place(range(brokers), partitions=brokers * 4, replication_factor=factor, start=3)
        assert all(len(set(replicas)) == factor for replicas in placed)
        held = [sum(broker in replicas for replicas in placed) for broker in range(brokers)]
        assert set(held) == {4 * factor}


@pytest.mark.parametrize("factor", [0, -1, 3])
def test_more_replicas_than_brokers_are_refused(factor):
    with pytest.raises(InvalidReplicationFactorError, match="2 broker"):
        place([1, 2], partitions=1, replication_factor=factor, start=0)


def test_new_partitions_go_to_the_folder_with_the_fewest():
    one, two, three = (bytes([number]) * 16 for number in (1, 2, 3))
    image = ClusterImage()
    image.apply(TopicRecord(name="orders", topic_id=b"t" * 16), 0)
    for index, directory_id in enumerate((one, one, two, bytes(16))):
        record = PartitionRecord(
            partition_id=index, topic_id=b"t" * 16, replicas=[1], directories=[directory_id]
        )
        image.apply(record, 1)
    chosen = list(islice(spread([one, two, three], image), 6))
    assert chosen == [three, two, three, one, two, three]
