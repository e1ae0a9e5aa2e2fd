"""The admin client: topics, partitions, configurations, groups, with kafka-python's names."""

from pyclient.admin.admin import KafkaAdminClient
from pyclient.admin.config_types import (
    AlterConfigOp,
    ConfigFilterType,
    ConfigResource,
    ConfigResourceType,
    ConfigSourceType,
    ConfigType,
)
from pyclient.admin.new_topic import NewTopic
from pyclient.admin.partitions import NewPartitions
from pyclient.admin.records import IsolationLevel, OffsetSpec

__all__ = [
    "AlterConfigOp",
    "ConfigFilterType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSourceType",
    "ConfigType",
    "IsolationLevel",
    "KafkaAdminClient",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
]
