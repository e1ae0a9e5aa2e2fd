"""kafka-python's module of `JsonSerializer`."""

from pyclient.serialization import JsonSerializer

__all__ = [
    "JsonSerializer",
]
