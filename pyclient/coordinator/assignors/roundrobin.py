"""kafka-python's module of `RoundRobinPartitionAssignor`."""

from pyclient.consumer.group.assignors import RoundRobinPartitionAssignor

__all__ = [
    "RoundRobinPartitionAssignor",
]
