"""The admin client: topics, partitions and configurations, with kafka-python's names."""

from pyclient.admin.admin import KafkaAdminClient
from pyclient.admin.configs import ConfigResource, ConfigResourceType
from pyclient.admin.partitions import NewPartitions
from pyclient.admin.topics import NewTopic

__all__ = [
    "ConfigResource",
    "ConfigResourceType",
    "KafkaAdminClient",
    "NewPartitions",
    "NewTopic",
]
