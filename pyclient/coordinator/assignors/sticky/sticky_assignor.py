"""kafka-python's module of `StickyPartitionAssignor`."""

from pyclient.consumer.group.assignors import StickyPartitionAssignor

__all__ = [
    "StickyPartitionAssignor",
]
