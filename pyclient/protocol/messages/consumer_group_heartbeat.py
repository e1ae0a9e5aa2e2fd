"""ConsumerGroupHeartbeat (API key 68): the one request of the consumer group protocol (KIP-848).

A member joins with epoch 0, leaves with -1 (a static one for a while with -2), and sends only
what changed: null means as before. From version 1 on the member makes up its own id.
"""

from pyclient.protocol.primitives import INT16, INT32, STRING, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field, struct


class TopicPartitions(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[int] = field(array(INT32))


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions="0-1", flexible="0+"):
    """Join, stay in or leave a consumer group, and report what changed."""

    group_id: str = field(STRING)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)  # 0 joins, -1 leaves, -2 leaves for a while (static)
    instance_id: str | None = field(STRING, nullable="0+", default=None)
    rack_id: str | None = field(STRING, nullable="0+", default=None)
    rebalance_timeout_ms: int = field(INT32, default=-1)  # -1 as before
    subscribed_topic_names: list[str] | None = field(array(STRING), nullable="0+", default=None)
    subscribed_topic_regex: str | None = field(STRING, versions="1+", nullable="1+", default=None)
    server_assignor: str | None = field(STRING, nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = field(
        array(TopicPartitions), nullable="0+", default=None
    )

    def version_cap(self, transaction_version: int = 0) -> int:
        """0 while the member leaves it to the coordinator to choose its id."""
        return super().version_cap(transaction_version) if self.member_id else 0


class Assignment(Struct):
    """All that the member is to read."""

    topic_partitions: list[TopicPartitions] = field(array(TopicPartitions))


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions="0-1", flexible="0+"):
    """The member's epoch, and its assignment if that changed."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    member_id: str | None = field(STRING, nullable="0+", default=None)
    member_epoch: int = field(INT32)
    heartbeat_interval_ms: int = field(INT32)
    assignment: Assignment | None = field(struct(Assignment), nullable="0+", default=None)
