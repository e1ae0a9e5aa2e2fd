"""CreateTopics (API key 19): make topics.

From version 4 on, -1 partitions or replicas stand for the broker's defaults.
"""

from pyclient.protocol.primitives import BOOL, INT8, INT16, INT32, STRING, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field


class CreatableReplicaAssignment(Struct):
    """Brokers for one partition, the preferred leader first."""

    partition_index: int = field(INT32)
    broker_ids: list[int] = field(array(INT32))


class CreatableTopicConfig(Struct):
    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")


class CreatableTopic(Struct):
    """A topic to make, by counts or by explicit assignments."""

    name: str = field(STRING)
    num_partitions: int = field(INT32)
    replication_factor: int = field(INT16)
    assignments: list[CreatableReplicaAssignment] = field(array(CreatableReplicaAssignment))
    configs: list[CreatableTopicConfig] = field(array(CreatableTopicConfig))


class CreateTopicsRequest(Message, api_key=19, versions="2-7", flexible="5+"):
    topics: list[CreatableTopic] = field(array(CreatableTopic))
    timeout_ms: int = field(INT32, default=60000)
    validate_only: bool = field(BOOL)

    def version_floor(self) -> int:
        """4 where a count is left to the broker: -1 meant nothing before."""
        left_to_the_broker = any(
            -1 in (topic.num_partitions, topic.replication_factor)
            for topic in self.topics
            if not topic.assignments
        )
        return 4 if left_to_the_broker else super().version_floor()


class CreatableTopicConfigs(Struct):
    """A configuration entry as it came out."""

    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")
    read_only: bool = field(BOOL)
    config_source: int = field(INT8, default=-1)
    is_sensitive: bool = field(BOOL)


class CreatableTopicResult(Struct):
    """A topic that was made, or why it was not."""

    name: str = field(STRING)
    topic_id: Uuid = field(UUID, versions="7+", ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    topic_config_error_code: int = field(INT16, versions="5+", tag=0, ignorable=True)
    num_partitions: int = field(INT32, versions="5+", default=-1, ignorable=True)
    replication_factor: int = field(INT16, versions="5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field(
        array(CreatableTopicConfigs), versions="5+", nullable="5+", ignorable=True
    )


class CreateTopicsResponse(Message, api_key=19, versions="2-7", flexible="5+"):
    """Which topics were made."""

    throttle_time_ms: int = field(INT32)
    topics: list[CreatableTopicResult] = field(array(CreatableTopicResult))
