"""kafka-python's module of `KafkaAdminClient`."""

from pyclient.admin import KafkaAdminClient

__all__ = [
    "KafkaAdminClient",
]
