"""Chooses the brokers and log dirs of new replicas.

Kafka's round-robin: the first replica of partition i goes to broker (start + i), and followers
are shifted one broker further with each round, so that the load of a failed broker spreads over
all others. Pure functions.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heapify, heapreplace

from broker_stub.metadata.image import ClusterImage
from pyclient.error_codes import InvalidReplicationFactorError
from pyclient.protocol.primitives import Uuid


def place(
    brokers: Sequence[int], partitions: int, replication_factor: int, start: int
) -> list[tuple[int, ...]]:
    """The replicas of each partition, the preferred leader first.

    Args:
        brokers: the ids of the brokers that can take replicas, in order.
        partitions: how many partitions to place.
        replication_factor: how many replicas each partition gets.
        start: any number; the index of the first leader, modulo the number of brokers.

    Raises:
        InvalidReplicationFactorError: there are fewer brokers than replicas.
    """
    if not 0 < replication_factor <= len(brokers):
        raise InvalidReplicationFactorError(
            f"Unable to replicate the partition {replication_factor} time(s): The target "
            f"replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered."
        )
    return [
        _replicas(brokers, start + index, replication_factor, shift=index // len(brokers))
        for index in range(partitions)
    ]


def _replicas(brokers: Sequence[int], first: int, count: int, shift: int) -> tuple[int, ...]:
    total = len(brokers)
    chosen = [brokers[first % total]]
    for replica in range(count - 1):
        # 1 to total - 1 places after the leader.
        distance = 1 + (shift + replica) % (total - 1)
        chosen.append(brokers[(first + distance) % total])
    return tuple(chosen)


def spread(directory_ids: Sequence[Uuid], image: ClusterImage) -> Iterator[Uuid]:
    """Log dirs for new partitions: each goes to the one with the fewest partitions."""
    counts = Counter(
        directory_id
        for topic in image.topics()
        for partition in topic.partitions.values()
        for directory_id in partition.directories
    )
    emptiest = [(counts[one], order, one) for order, one in enumerate(directory_ids)]
    heapify(emptiest)
    while True:
        count, order, directory_id = emptiest[0]
        yield directory_id
        heapreplace(emptiest, (count + 1, order, directory_id))
