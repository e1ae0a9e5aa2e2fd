"""kafka-python's module of `StickyPartitioner`."""

from pyclient.producer.partitioner import StickyPartitioner

__all__ = [
    "StickyPartitioner",
]
