"""kafka-python's module of the partitioners' interface."""

from pyclient.producer.partitioner import Partitioner

__all__ = [
    "Partitioner",
]
