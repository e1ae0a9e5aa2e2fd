"""Offsets committed in transactions that have not ended: not visible yet.

A commit marker makes them visible, an abort marker drops them. Where several commits of one
partition overlap, the one that was written last wins, not the one whose transaction ends last: a
restart that reads the log back, compacted or not, comes to the same. Serving thread only.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from broker_stub.coordinator.groups.offsets import CommittedOffset
from pyclient.types import TopicPartition


class _Key(NamedTuple):
    """A transaction in one partition of `__consumer_offsets`."""

    log_partition: int
    producer_id: int


class _Pending:
    """A pending offset. `is_superseded` says that a later commit is visible already."""

    __slots__ = ("is_superseded", "offset", "order")

    def __init__(self, offset: CommittedOffset, order: int) -> None:
        self.offset = offset
        self.order = order
        self.is_superseded = False


class PendingOffsets:
    """The pending offsets of every open transaction."""

    def __init__(self) -> None:
        self._transactions: dict[_Key, dict[str, dict[TopicPartition, _Pending]]] = {}
        self._by_group: dict[str, set[_Key]] = {}
        self._order = 0

    def __bool__(self) -> bool:
        return bool(self._transactions)

    def put(
        self, index: int, producer_id: int, group_id: str, partition: TopicPartition,
        offset: CommittedOffset,
    ) -> None:  # fmt: skip
        """Note an offset that the log has."""
        key = _Key(index, producer_id)
        self._order += 1
        groups = self._transactions.setdefault(key, {})
        groups.setdefault(group_id, {})[partition] = _Pending(offset, self._order)
        self._by_group.setdefault(group_id, set()).add(key)

    def end(
        self, index: int, producer_id: int, *, committed: bool
    ) -> Iterator[tuple[str, Mapping[TopicPartition, CommittedOffset]]]:
        """End a transaction; gives the offsets of each group that become visible."""
        key = _Key(index, producer_id)
        groups = self._transactions.pop(key, {})
        for group_id, pendings in groups.items():
            keys = self._by_group[group_id]
            keys.discard(key)
            if not keys:
                del self._by_group[group_id]
            if not committed:
                continue
            visible = {}
            for partition, pending in pendings.items():
                if not pending.is_superseded:
                    visible[partition] = pending.offset
                    self._supersede(group_id, partition, pending.order)
            yield group_id, visible

    def supersede(self, group_id: str, partition: TopicPartition) -> None:
        """An offset of no transaction was committed: earlier pending ones stay invisible."""
        if group_id in self._by_group:
            self._supersede(group_id, partition, self._order)

    def _supersede(self, group_id: str, partition: TopicPartition, order: int) -> None:
        for pending in self._of(group_id, partition):
            if pending.order <= order:
                pending.is_superseded = True

    def has(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether an open transaction has committed an offset of the partition."""
        return any(True for _ in self._of(group_id, partition))

    def has_group(self, group_id: str) -> bool:
        """Whether an open transaction has committed offsets of the group."""
        return group_id in self._by_group

    def partitions(self, group_id: str) -> set[TopicPartition]:
        """The partitions of a group that have pending offsets."""
        return {
            partition
            for key in self._by_group.get(group_id, ())
            for partition in self._transactions[key][group_id]
        }

    def group_ids(self) -> list[str]:
        """The groups that have pending offsets."""
        return list(self._by_group)

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """The offset of a partition was deleted, pending ones too."""
        for key in self._by_group.get(group_id, ()):
            self._transactions[key][group_id].pop(partition, None)

    def clear(self) -> None:
        """Forget everything."""
        self._transactions.clear()
        self._by_group.clear()

    def _of(self, group_id: str, partition: TopicPartition) -> Iterator[_Pending]:
        for key in self._by_group.get(group_id, ()):
            pending = self._transactions[key][group_id].get(partition)
            if pending is not None:
                yield pending
