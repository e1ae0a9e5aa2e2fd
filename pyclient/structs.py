"""kafka-python's module of tuples."""

from pyclient.types import (
    BrokerMetadata,
    ConsumerGroupMetadata,
    MemberState,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionMetadata,
    TopicPartition,
    TopicPartitionReplica,
)

__all__ = [
    "BrokerMetadata",
    "ConsumerGroupMetadata",
    "MemberState",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionMetadata",
    "TopicPartition",
    "TopicPartitionReplica",
]
