"""kafka-python's module of `Future`."""

from pyclient.compat.future import Future

__all__ = [
    "Future",
]
