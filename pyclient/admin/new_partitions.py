"""kafka-python 2's module of `NewPartitions`."""

from pyclient.admin import NewPartitions

__all__ = [
    "NewPartitions",
]
