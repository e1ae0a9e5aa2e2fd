"""kafka-python's module of `DefaultSerializer`."""

from pyclient.serialization import DefaultSerializer

__all__ = [
    "DefaultSerializer",
]
