"""kafka-python's module of the type of records."""

from pyclient.compat.record import ABCRecord

__all__ = [
    "ABCRecord",
]
