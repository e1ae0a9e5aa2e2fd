"""kafka-python's module of `RangePartitionAssignor`."""

from pyclient.consumer.group.assignors import RangePartitionAssignor

__all__ = [
    "RangePartitionAssignor",
]
