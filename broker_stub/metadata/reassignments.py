"""Moving partitions to other brokers: which moves can be asked for. Pure functions.

With one broker, the replicas that a partition can be given are those it has: a move is refused,
or done before it begins, so none is ever under way.
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
    """Check a move of a partition to these replicas; None calls a move off.

    Raises:
        UnknownTopicOrPartitionError: there is no such partition.
        NoReassignmentInProgressError: it does not move, so there is nothing to call off.
        InvalidReplicaAssignmentError: the replicas can't be had.
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
