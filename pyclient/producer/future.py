"""kafka-python's module of the futures of sent records."""

from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.types import RecordMetadata

__all__ = [
    "FutureRecordMetadata",
    "RecordMetadata",
]
