"""Metadata (API key 3): brokers, topics, partitions and their leaders.

In version 0 an empty topic list asks for all topics; from 1 on null does, and empty asks for
none. Topics may be named by id from version 10 on, but brokers answer such requests from 12 on.
"""

from pyclient.protocol.primitives import BOOL, INT16, INT32, STRING, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field


class MetadataRequestTopic(Struct):
    """A topic to describe, by name or by id."""

    topic_id: Uuid = field(UUID, versions="10+", ignorable=True)
    name: str | None = field(STRING, nullable="10+")


class MetadataRequest(Message, api_key=3, versions="0-13", flexible="9+"):
    """Ask for brokers and for topics, and have missing topics created."""

    topics: list[MetadataRequestTopic] | None = field(array(MetadataRequestTopic), nullable="1+")
    allow_auto_topic_creation: bool = field(BOOL, versions="4+", default=True)
    include_cluster_authorized_operations: bool = field(BOOL, versions="8-10")
    include_topic_authorized_operations: bool = field(BOOL, versions="8+")

    def version_cap(self, transaction_version: int = 0) -> int:
        """10 for a request for the cluster's operations, which DescribeCluster took over."""
        if self.include_cluster_authorized_operations:
            return 10
        return super().version_cap(transaction_version)

    def version_floor(self) -> int:
        """12 for topics by id; 8 for allowed operations; 1 for all topics, which null asks for."""
        if self.topics is not None and any(topic.name is None for topic in self.topics):
            return 12
        if self.include_cluster_authorized_operations or self.include_topic_authorized_operations:
            return 8
        return 1 if self.topics is None else super().version_floor()


class MetadataResponseBroker(Struct):
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, versions="1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: int = field(INT16)
    partition_index: int = field(INT32)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32, versions="7+", default=-1, ignorable=True)
    replica_nodes: list[int] = field(array(INT32))
    isr_nodes: list[int] = field(array(INT32))
    offline_replicas: list[int] = field(array(INT32), versions="5+", ignorable=True)


class MetadataResponseTopic(Struct):
    """A topic and its partitions, or why it can't be described."""

    error_code: int = field(INT16)
    name: str | None = field(STRING, nullable="12+")
    topic_id: Uuid = field(UUID, versions="10+", ignorable=True)
    is_internal: bool = field(BOOL, versions="1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = field(array(MetadataResponsePartition))
    # bits; the default means not asked for
    topic_authorized_operations: int = field(INT32, versions="8+", default=-(2**31))


class MetadataResponse(Message, api_key=3, versions="0-13", flexible="9+"):
    """The cluster as the answering broker sees it."""

    throttle_time_ms: int = field(INT32, versions="3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field(array(MetadataResponseBroker))
    cluster_id: str | None = field(
        STRING, versions="2+", nullable="2+", default=None, ignorable=True
    )
    controller_id: int = field(INT32, versions="1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field(array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(INT32, versions="8-10", default=-(2**31))
    error_code: int = field(INT16, versions="13+", ignorable=True)
