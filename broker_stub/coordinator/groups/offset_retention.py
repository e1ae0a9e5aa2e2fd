"""Which committed offsets have expired (`offsets.retention.minutes`). Pure functions."""

from collections.abc import Mapping

from broker_stub.coordinator.groups.classic_group import ClassicGroup
from broker_stub.coordinator.groups.group_state import GroupState
from broker_stub.coordinator.groups.offsets import CommittedOffset
from broker_stub.coordinator.groups.subscriptions import CONSUMER
from pyclient.types import TopicPartition


def expired_partitions(
    group: ClassicGroup,
    offsets: Mapping[TopicPartition, CommittedOffset],
    now_ms: int,
    retention_ms: int,
) -> list[TopicPartition]:
    """The partitions whose offsets can be removed.

    In an empty group the retention time counts from the moment it became empty; in a group without
    members ever, from the commit. A stable consumer group keeps the offsets of the topics it
    subscribes to, and its other offsets expire by their commit time.
    """
    since_empty: int | None = None
    if group.protocol_type is not None:
        is_stable_consumer = (
            group.state is GroupState.STABLE
            and group.protocol_type == CONSUMER
            and group.subscriptions.topics is not None
        )
        if group.state is GroupState.EMPTY:
            since_empty = group.state_since_ms
        elif not is_stable_consumer:
            return []

    def is_expired(offset: CommittedOffset) -> bool:
        if offset.expire_timestamp_ms >= 0:
            return now_ms >= offset.expire_timestamp_ms
        since = offset.commit_timestamp_ms if since_empty is None else since_empty
        return now_ms - since >= retention_ms

    return [
        partition
        for partition, offset in offsets.items()
        if not group.may_subscribe_to(partition.topic) and is_expired(offset)
    ]
