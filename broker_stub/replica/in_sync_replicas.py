"""Checks `min.insync.replicas` before an append with acks=all. A pure function."""

from pyclient.error_codes import NotEnoughReplicasError


def check_min_insync_replicas(
    partition: object, min_insync_replicas: int, *, in_sync: int, replicas: int
) -> None:
    """Refuse an append if too few replicas are in sync.

    A topic with fewer replicas than `min.insync.replicas` needs all of them, as in Apache Kafka 4.

    Raises:
        NotEnoughReplicasError: fewer are in sync than needed; the text names the partition.
    """
    needed = min(min_insync_replicas, replicas)
    if in_sync < needed:
        raise NotEnoughReplicasError(
            f"{partition} has {in_sync} in-sync replica(s), and needs {needed}"
        )
