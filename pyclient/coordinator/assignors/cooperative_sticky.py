"""kafka-python's module of `CooperativeStickyAssignor`."""

from pyclient.consumer.group.assignors import CooperativeStickyAssignor

__all__ = [
    "CooperativeStickyAssignor",
]
