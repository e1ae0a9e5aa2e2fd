"""kafka-python's module of `ConsumerRecord`."""

from pyclient.records.record import ConsumerRecord

__all__ = [
    "ConsumerRecord",
]
