"""kafka-python's module of `DefaultPartitioner` and the hash of keys."""

from pyclient._twin import murmur2
from pyclient.producer.partitioner import DefaultPartitioner

__all__ = [
    "DefaultPartitioner",
    "murmur2",
]
