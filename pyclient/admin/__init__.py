"""The admin client, with kafka-python's names.

- `admin`: `KafkaAdminClient`; `calls`: the base of its parts
- `topics`, `partitions`, `replicas`, `records`, `groups`, `cluster`: the calls of each noun
- `configs`: describing configurations; `config_changes`: changing them; `config_types`: their types
- `new_topic`, `partition_keys`, `topic_metadata`: arguments and lookups that calls share
- `work`: a call's named things and their progress; `results`: their outcomes
- `requests`: sends a call's requests, with retries and a deadline; `routes`: to which brokers
"""

from pyclient.admin.admin import KafkaAdminClient
from pyclient.admin.partitions import NewPartitions
from pyclient.admin.records import IsolationLevel, OffsetSpec
from pyclient.admin.replicas import ElectionType
from pyclient.admin.types.configs import (
    AlterConfigOp,
    ConfigFilterType,
    ConfigResource,
    ConfigResourceType,
    ConfigSourceType,
    ConfigType,
)
from pyclient.admin.types.new_topic import NewTopic

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
