"""Where the replicas of new partitions go."""

import pytest

from broker_stub.metadata.placement import place
from pyclient.error_codes import InvalidReplicationFactorError


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
