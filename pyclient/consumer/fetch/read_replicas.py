"""Which replicas to read from instead of the leaders (KIP-392). The I/O thread only.

A leader that knows a replica in the consumer's rack (`client.rack`) names it in its answer to a
fetch. It is used for `metadata.max.age.ms`; then the leader is asked again.
"""

import logging
from typing import NamedTuple

from pyclient.metadata import ClusterMetadata
from pyclient.types import TopicPartition

log = logging.getLogger(__name__)


class _Preference(NamedTuple):
    node: int
    expires_at_ms: float
    leader: tuple[int, int]  # that named it, and its epoch


class ReadReplicas:
    """The preferred read replicas of partitions."""

    def __init__(self, lifetime_ms: float) -> None:
        self._lifetime_ms = lifetime_ms
        self._preferred: dict[TopicPartition, _Preference] = {}

    def prefer(
        self, partition: TopicPartition, node: int, snapshot: ClusterMetadata, now_ms: float
    ) -> None:
        """The leader has named a replica to read from."""
        known = snapshot.partition(*partition)
        present = self._preferred.get(partition)
        if known is None or (present is not None and present.node == node):
            return
        log.debug("reading %s-%d from node %d, as its leader prefers", *partition, node)
        leader = (known.leader, known.leader_epoch)
        self._preferred[partition] = _Preference(node, now_ms + self._lifetime_ms, leader)

    def node_for(
        self, partition: TopicPartition, leader: int, snapshot: ClusterMetadata, now_ms: float
    ) -> int:
        """The node to read a partition from: the preferred one while it is valid, or the leader."""
        preferred = self._preferred.get(partition)
        if preferred is None:
            return leader
        if (
            now_ms < preferred.expires_at_ms
            and preferred.node in snapshot.brokers
            and preferred.leader == (leader, snapshot.leader_epoch_for_partition(partition))
        ):
            return preferred.node
        del self._preferred[partition]
        return leader

    def forget(self, partition: TopicPartition) -> int | None:
        """Read from the leader again; returns the replica that was preferred, if any."""
        preferred = self._preferred.pop(partition, None)
        return None if preferred is None else preferred.node
