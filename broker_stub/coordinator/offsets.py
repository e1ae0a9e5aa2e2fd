"""Committed offsets of all groups, in memory; the log behind them is `group_log`'s."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyclient.types import TopicPartition


class CommittedOffset(NamedTuple):
    """Where a group goes on reading a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int


class CommittedOffsets:
    """One mapping per group. Serving thread only."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def put(self, group_id: str, partition: TopicPartition, offset: CommittedOffset) -> None:
        """Remember an offset that is in the log."""
        self._groups.setdefault(group_id, {})[partition] = offset

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Forget an offset."""
        self._groups.get(group_id, {}).pop(partition, None)

    def get(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """The offset, if one was committed."""
        return self._groups.get(group_id, {}).get(partition)

    def partitions(self, group_id: str) -> list[TopicPartition]:
        """The partitions that a group has offsets for, sorted."""
        return sorted(self._groups.get(group_id, {}))

    def group_ids(self) -> list[str]:
        """The groups that have offsets."""
        return [group_id for group_id, offsets in self._groups.items() if offsets]

    def remove_group(self, group_id: str) -> None:
        """Forget all offsets of a group."""
        self._groups.pop(group_id, None)

    def of_topic(self, topic: str) -> Iterator[tuple[str, TopicPartition]]:
        """Every group's partitions of a topic: what goes when the topic is deleted."""
        for group_id, offsets in self._groups.items():
            for partition in [one for one in offsets if one.topic == topic]:
                yield group_id, partition
