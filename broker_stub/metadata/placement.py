"""Which brokers get the replicas of a new topic's partitions.

Kafka's round-robin: the first replica of partition i goes to broker (start + i), and followers
are shifted one broker further with each round, so that the load of a failed broker spreads over
all others. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyclient.error_codes import InvalidReplicationFactorError


def place(
    brokers: Sequence[int], partitions: int, replication_factor: int, start: int
) -> list[tuple[int, ...]]:
    """The replicas of each partition, the preferred leader first.

    Args:
        brokers: the ids of those that can take replicas, in order.
        partitions: how many to place.
        replication_factor: how many replicas each.
        start: any number; it decides where the round begins.

    Raises:
        InvalidReplicationFactorError: there are fewer brokers than replicas wanted.
    """
    if not 0 < replication_factor <= len(brokers):
        raise InvalidReplicationFactorError(
            f"replication factor {replication_factor} with {len(brokers)} broker(s) available"
        )
    return [
        _replicas(brokers, start + index, replication_factor, shift=index // len(brokers))
        for index in range(partitions)
    ]


def _replicas(brokers: Sequence[int], first: int, count: int, shift: int) -> tuple[int, ...]:
    total = len(brokers)
    chosen = [brokers[first % total]]
    for replica in range(count - 1):
        # Among the others only: 1 to total - 1 places behind the leader.
        distance = 1 + (shift + replica) % (total - 1)
        chosen.append(brokers[(first + distance) % total])
    return tuple(chosen)
