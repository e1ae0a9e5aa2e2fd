"""What consumers write into JoinGroup and SyncGroup, without the client's own code."""

from pyclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

_VERSION_0 = b"\0\0"


def subscription(*topics: str) -> bytes:
    """The metadata of a consumer that subscribes to the topics."""
    return _VERSION_0 + ConsumerProtocolSubscription(topics=list(topics)).encode_bytes(0)


def assignment(**partitions: list[int]) -> bytes:
    """Partitions by topic."""
    assigned = [
        TopicPartition(topic=topic, partitions=indexes) for topic, indexes in partitions.items()
    ]
    return _VERSION_0 + ConsumerProtocolAssignment(assigned_partitions=assigned).encode_bytes(0)
