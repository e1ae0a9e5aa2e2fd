"""kafka-python's module of `KafkaAdminClient`."""

from pyclient.admin.admin import KafkaAdminClient

__all__ = [
    "KafkaAdminClient",
]
