"""kafka-python 2's module of `NewPartitions`."""

from pyclient.admin.partitions import NewPartitions

__all__ = [
    "NewPartitions",
]
