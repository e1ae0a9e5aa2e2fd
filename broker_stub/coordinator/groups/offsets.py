"""Committed offsets of all groups, in memory."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pyclient.types import TopicPartition


class CommittedOffset(NamedTuple):
    """The offset from which a group reads a partition next."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = -1  # only old clients (OffsetCommit 2-4) set one


class CommittedOffsets:
    """The offsets of each group. Serving thread only."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def put(self, group_id: str, partition: TopicPartition, offset: CommittedOffset) -> None:
        """Set an offset that the log has."""
        self._groups.setdefault(group_id, {})[partition] = offset

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Remove an offset; nothing happens if there is none."""
        offsets = self._groups.get(group_id, {})
        offsets.pop(partition, None)
        if not offsets:
            self._groups.pop(group_id, None)

    def remove_group(self, group_id: str) -> None:
        """Remove all offsets of a group."""
        self._groups.pop(group_id, None)

    def clear(self) -> None:
        """Remove all offsets of all groups."""
        self._groups.clear()

    def get(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """The offset, if one was committed."""
        return self._groups.get(group_id, {}).get(partition)

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """All offsets of a group."""
        return self._groups.get(group_id, {})

    def partitions(self, group_id: str) -> list[TopicPartition]:
        """The partitions that a group has offsets for, sorted."""
        return sorted(self._groups.get(group_id, {}))

    def group_ids(self) -> list[str]:
        """The groups that have offsets."""
        return list(self._groups)

    def of_topic(self, topic: str) -> Iterator[tuple[str, list[TopicPartition]]]:
        """The partitions of a topic that each group has offsets for."""
        for group_id, offsets in self._groups.items():
            partitions = [one for one in offsets if one.topic == topic]
            if partitions:
                yield group_id, partitions
