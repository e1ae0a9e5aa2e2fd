"""kafka-python's module of partitioners."""

from pyclient._twin import murmur2
from pyclient.producer.partitioner import (
    DefaultPartitioner,
    Partitioner,
    RoundRobinPartitioner,
    StickyPartitioner,
)

__all__ = [
    "DefaultPartitioner",
    "Partitioner",
    "RoundRobinPartitioner",
    "StickyPartitioner",
    "murmur2",
]
