"""confluent-kafka's types of admin calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import total_ordering
from typing import Any

from pyclient.admin.types.offsets import OffsetSpec as _Spec
from pyclient.compat.confluent.error import KafkaError
from pyclient.compat.confluent.topic_partition import TopicPartition


class NewTopic:
    """A topic to create; -1 leaves a number to the broker."""

    def __init__(
        self,
        topic: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        replica_assignment: Sequence[Sequence[int]] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.topic = topic
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignment = replica_assignment
        self.config = dict(config or {})

    def __str__(self) -> str:
        return f"NewTopic(topic={self.topic},num_partitions={self.num_partitions})"


class NewPartitions:
    """More partitions for a topic."""

    def __init__(
        self,
        topic: str,
        new_total_count: int,
        replica_assignment: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.topic = topic
        self.new_total_count = new_total_count
        self.replica_assignment = replica_assignment


@total_ordering
class _OrderedEnum(Enum):
    def __lt__(self, other: Any) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return bool(self.value < other.value)


class ResourceType(_OrderedEnum):
    """What an ACL or a configuration is about, with librdkafka's numbers."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    BROKER = 4
    TRANSACTIONAL_ID = 5


class ConfigSource(Enum):
    """Where the value of a configuration entry comes from."""

    UNKNOWN_CONFIG = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    GROUP_CONFIG = 8


class AlterConfigOpType(Enum):
    """What to do to a configuration entry."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigEntry:
    """A configuration entry, or a change of one."""

    def __init__(
        self,
        name: str,
        value: str | None,
        source: ConfigSource = ConfigSource.UNKNOWN_CONFIG,
        is_read_only: bool = False,
        is_default: bool = False,
        is_sensitive: bool = False,
        is_synonym: bool = False,
        synonyms: Mapping[str, ConfigEntry] | None = None,
        incremental_operation: AlterConfigOpType | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source
        self.is_read_only = is_read_only
        self.is_default = is_default
        self.is_sensitive = is_sensitive
        self.is_synonym = is_synonym
        self.synonyms = dict(synonyms or {})
        self.incremental_operation = incremental_operation

    def __repr__(self) -> str:
        return f'ConfigEntry({self.name}="{self.value}")'

    def __str__(self) -> str:
        return f'{self.name}="{self.value}"'


@total_ordering
class ConfigResource:
    """Something that has a configuration, and changes of it."""

    Type = ResourceType

    def __init__(
        self,
        restype: ResourceType | str | int,
        name: str,
        set_config: Mapping[str, str] | None = None,
        described_configs: Mapping[str, ConfigEntry] | None = None,
        error: KafkaError | None = None,
        incremental_configs: Sequence[ConfigEntry] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise ValueError("Expected resource name to be a string")
        if isinstance(restype, str):
            if restype.upper() not in ResourceType.__members__:
                raise ValueError(f"unknown resource type {restype!r}")
            restype = ResourceType[restype.upper()]
        self.restype = ResourceType(restype) if isinstance(restype, int) else restype
        self.name = name
        self.set_config_dict = dict(set_config or {})
        self.incremental_configs = list(incremental_configs or [])
        self.configs = described_configs
        self.error = error

    def set_config(self, name: str, value: str, overwrite: bool = True) -> None:
        """Set an entry, for `alter_configs`."""
        if overwrite or name not in self.set_config_dict:
            self.set_config_dict[name] = value

    def add_incremental_config(self, config_entry: ConfigEntry) -> None:
        """Add a change, for `incremental_alter_configs`."""
        self.incremental_configs.append(config_entry)

    def _key(self) -> tuple[int, str]:
        return self.restype.value, self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigResource) and self._key() == other._key()

    def __lt__(self, other: ConfigResource) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __len__(self) -> int:
        return len(self.set_config_dict)

    def __repr__(self) -> str:
        return f"ConfigResource({self.restype},{self.name})"


class Node:
    """A broker."""

    def __init__(self, id: int, host: str, port: int, rack: str | None = None) -> None:  # noqa: A002
        self.id = id
        self.id_string = str(id)
        self.host = host
        self.port = port
        self.rack = rack

    def __str__(self) -> str:
        return f"({self.id}) {self.host}:{self.port}"


class ConsumerGroupState(Enum):
    """The state of a group."""

    UNKNOWN = 0
    PREPARING_REBALANCING = 1
    COMPLETING_REBALANCING = 2
    STABLE = 3
    DEAD = 4
    EMPTY = 5

    @classmethod
    def of(cls, kafkas: str | None) -> ConsumerGroupState:
        """From Kafka's name, as in `PreparingRebalance`."""
        return _STATES.get(kafkas or "", cls.UNKNOWN)


_STATES = {
    "PreparingRebalance": ConsumerGroupState.PREPARING_REBALANCING,
    "CompletingRebalance": ConsumerGroupState.COMPLETING_REBALANCING,
    "Stable": ConsumerGroupState.STABLE,
    "Dead": ConsumerGroupState.DEAD,
    "Empty": ConsumerGroupState.EMPTY,
}


class ConsumerGroupType(Enum):
    """The protocol of a group."""

    UNKNOWN = 0
    CONSUMER = 1
    CLASSIC = 2


class ConsumerGroupListing:
    """A group in a list."""

    def __init__(
        self,
        group_id: str,
        is_simple_consumer_group: bool,
        state: ConsumerGroupState = ConsumerGroupState.UNKNOWN,
        type: ConsumerGroupType = ConsumerGroupType.UNKNOWN,  # noqa: A002
    ) -> None:
        self.group_id = group_id
        self.is_simple_consumer_group = is_simple_consumer_group
        self.state = state
        self.type = type


class ListConsumerGroupsResult:
    """A list of groups, and what could not be listed."""

    def __init__(
        self,
        valid: Sequence[ConsumerGroupListing] | None = None,
        errors: Sequence[Exception] | None = None,
    ) -> None:
        self.valid = list(valid or [])
        self.errors = list(errors or [])


class MemberAssignment:
    """The partitions of a member."""

    def __init__(self, topic_partitions: Sequence[TopicPartition] | None) -> None:
        self.topic_partitions = list(topic_partitions or [])


class MemberDescription:
    """A member of a group."""

    def __init__(
        self,
        member_id: str,
        client_id: str,
        host: str,
        assignment: MemberAssignment,
        group_instance_id: str | None = None,
    ) -> None:
        self.member_id = member_id
        self.client_id = client_id
        self.host = host
        self.assignment = assignment
        self.group_instance_id = group_instance_id


class ConsumerGroupDescription:
    """A group and its members."""

    def __init__(
        self,
        group_id: str,
        members: Sequence[MemberDescription],
        partition_assignor: str,
        state: ConsumerGroupState,
        type: ConsumerGroupType = ConsumerGroupType.CLASSIC,  # noqa: A002
    ) -> None:
        self.group_id = group_id
        self.is_simple_consumer_group = not partition_assignor
        self.members = list(members)
        self.partition_assignor = partition_assignor
        self.state = state
        self.type = type


class ConsumerGroupTopicPartitions:
    """A group, with partitions and their offsets."""

    def __init__(
        self, group_id: str, topic_partitions: Sequence[TopicPartition] | None = None
    ) -> None:
        self.group_id = group_id
        self.topic_partitions = topic_partitions


class TopicCollection:
    """Names of topics."""

    def __init__(self, topic_names: Sequence[str]) -> None:
        self.topic_names = list(topic_names)


class TopicPartitionInfo:
    """A partition in the description of a topic."""

    def __init__(
        self,
        id: int,  # noqa: A002
        leader: Node | None,
        replicas: Sequence[Node],
        isr: Sequence[Node],
    ) -> None:
        self.id = id
        self.leader = leader
        self.replicas = list(replicas)
        self.isr = list(isr)


class TopicDescription:
    """A topic and its partitions."""

    def __init__(
        self, name: str, topic_id: str, is_internal: bool, partitions: Sequence[TopicPartitionInfo]
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = list(partitions)


class DescribeClusterResult:
    """The cluster's id, controller and brokers."""

    def __init__(
        self, controller: Node | None, nodes: Sequence[Node], cluster_id: str | None
    ) -> None:
        self.controller = controller
        self.nodes = list(nodes)
        self.cluster_id = cluster_id


class DeletedRecords:
    """Where a partition starts after records were deleted."""

    def __init__(self, low_watermark: int) -> None:
        self.low_watermark = low_watermark


class IsolationLevel(Enum):
    """Which records count."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetSpec:
    """What `list_offsets` looks for: a time in milliseconds, or an end."""

    def __init__(self, timestamp: int) -> None:
        self.timestamp = timestamp

    @classmethod
    def earliest(cls) -> OffsetSpec:
        """The first offset."""
        return cls(int(_Spec.EARLIEST))

    @classmethod
    def latest(cls) -> OffsetSpec:
        """The offset behind the last record."""
        return cls(int(_Spec.LATEST))

    @classmethod
    def max_timestamp(cls) -> OffsetSpec:
        """The record with the largest timestamp."""
        return cls(int(_Spec.MAX_TIMESTAMP))

    @classmethod
    def for_timestamp(cls, timestamp: int) -> OffsetSpec:
        """The first record at or after a time."""
        return cls(timestamp)


class ListOffsetsResultInfo:
    """An offset that was looked up."""

    def __init__(self, offset: int, timestamp: int, leader_epoch: int | None) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.leader_epoch = leader_epoch
