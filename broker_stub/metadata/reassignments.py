"""Checks reassignments of partitions to other brokers. Pure functions.

With one broker, a partition can only keep its replicas: a reassignment is refused, or changes
nothing, so none is ever in progress.
"""

from collections.abc import Sequence

from broker_stub.metadata.image import ClusterImage
from broker_stub.metadata.topics import check_replicas
from pyclient.error_codes import (
    InvalidReplicaAssignmentError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)


def check_reassignment(
    topic_name: str, partition_index: int, replicas: Sequence[int] | None, image: ClusterImage
) -> None:
    """Check a reassignment of a partition to these replicas; None cancels one.

    Raises:
        UnknownTopicOrPartitionError: there is no such partition.
        NoReassignmentInProgressError: there is no reassignment to cancel.
        InvalidReplicaAssignmentError: the partition cannot have these replicas.
    """
    topic = image.topic(topic_name)
    if topic is None:
        raise UnknownTopicOrPartitionError(f"Unable to find a topic named {topic_name}.")
    partition = topic.partitions.get(partition_index)
    if partition is None:
        raise UnknownTopicOrPartitionError(
            f"Unable to find partition {topic_name}:{partition_index}."
        )
    if replicas is None:
        raise NoReassignmentInProgressError()
    check_replicas(replicas, image)
    if tuple(replicas) != partition.replicas:
        raise InvalidReplicaAssignmentError(
            f"This broker does not move {topic_name}-{partition_index} to replicas "
            f"{list(replicas)}."
        )
