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
from pyclient.admin.replicas import ElectionType

__all__ = [
    "AlterConfigOp",
    "ConfigFilterType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSourceType",
    "ConfigType",
    "ElectionType",
    "IsolationLevel",
    "KafkaAdminClient",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
]
