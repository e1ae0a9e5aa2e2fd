"""Which brokers get the replicas of a new topic's partitions, and in which of their folders.

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
        brokers: the ids of those that can take replicas, in order.
        partitions: how many to place.
        replication_factor: how many replicas each.
        start: any number; it decides where the round begins.

    Raises:
        InvalidReplicationFactorError: there are fewer brokers than replicas wanted.
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
        # Among the others only: 1 to total - 1 places behind the leader.
        distance = 1 + (shift + replica) % (total - 1)
        chosen.append(brokers[(first + distance) % total])
    return tuple(chosen)


def spread(directory_ids: Sequence[Uuid], image: ClusterImage) -> Iterator[Uuid]:
    """Folders for new partitions, one after another: always the one with the fewest."""
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
