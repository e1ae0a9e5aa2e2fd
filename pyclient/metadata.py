"""What a client knows of the cluster, as one immutable snapshot.

A new Metadata response makes a new snapshot; snapshots never change. So any thread may read the
current one without a lock, and comparing two by identity shows whether anything changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyclient.error_codes import KafkaError, LeaderNotAvailableError, for_code
from pyclient.errors import ProtocolError
from pyclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.types import BrokerMetadata, PartitionMetadata, TopicPartition

NO_LEADER = -1
NO_EPOCH = -1


@dataclass(frozen=True, slots=True, eq=False)
class TopicMetadata:
    """A topic and its partitions; `partitions[i]` is partition i.

    Attributes:
        topic_id: 16 bytes, all zero if the broker is too old to send it.
        available: the partitions that have a leader.
    """

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionMetadata, ...]
    available: tuple[int, ...]

    def with_leaders(self, leaders: Mapping[int, tuple[int, int]]) -> TopicMetadata:
        """A copy in which some partitions have another leader: (id, epoch) by partition."""
        partitions = tuple(
            one._replace(leader=leaders[one.partition][0], leader_epoch=leaders[one.partition][1])
            if one.partition in leaders
            else one
            for one in self.partitions
        )
        return replace(self, partitions=partitions, available=_with_leader(partitions))


@dataclass(frozen=True, slots=True, eq=False)
class ClusterMetadata:
    """The cluster at one moment, as one broker described it.

    Attributes:
        version: counts the snapshots of a client; 0 before the first response.
        topics: those that were described.
        topic_errors: requested topics that the broker answered with an error.
    """

    version: int = 0
    cluster_id: str | None = None
    controller_id: int = -1
    brokers: Mapping[int, BrokerMetadata] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    topic_errors: Mapping[str, type[KafkaError]] = field(default_factory=dict)
    topic_names: Mapping[bytes, str] = field(default_factory=dict)

    def partitions_for_topic(self, topic: str) -> tuple[int, ...] | None:
        """All partitions of a topic; None if the topic is not known."""
        found = self.topics.get(topic)
        return None if found is None else tuple(range(len(found.partitions)))

    def available_partitions_for_topic(self, topic: str) -> tuple[int, ...] | None:
        """The partitions of a topic that have a leader; None if the topic is not known."""
        found = self.topics.get(topic)
        return None if found is None else found.available

    def partition(self, topic: str, partition: int) -> PartitionMetadata | None:
        """One partition; None if it is not known."""
        found = self.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return None
        return found.partitions[partition]

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """The leader's id; None if the partition is not known or has none."""
        found = self.partition(partition.topic, partition.partition)
        return None if found is None or found.leader == NO_LEADER else found.leader

    def leader_epoch_for_partition(self, partition: TopicPartition) -> int:
        """The leader's epoch; -1 if it is not known."""
        found = self.partition(partition.topic, partition.partition)
        return NO_EPOCH if found is None else found.leader_epoch

    def topic_id(self, topic: str) -> bytes:
        """The topic's id; zero if the topic or its id is not known."""
        found = self.topics.get(topic)
        return ZERO_UUID if found is None else found.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if it is not known."""
        return self.topic_names.get(topic_id)

    def updated(self, response: MetadataResponse, *, partial: bool = False) -> ClusterMetadata:
        """The snapshot after a response.

        A leader with an older epoch than the known one is ignored: brokers learn of elections at
        different times, and going back would send requests to a deposed leader.

        Args:
            response: a broker's response.
            partial: the request named only some topics of interest; the others are kept.

        Raises:
            ProtocolError: the partitions of a topic have gaps.
        """
        topics = dict(self.topics) if partial else {}
        errors = dict(self.topic_errors) if partial else {}
        for described in response.topics:
            name = described.name
            if name is None:  # asked for by an id that no topic has; we ask by name
                continue
            topics.pop(name, None)
            errors.pop(name, None)
            if described.error_code:
                errors[name] = for_code(described.error_code)
            elif not described.partitions:  # it is being made, and will have some
                errors[name] = LeaderNotAvailableError
            else:
                topics[name] = _topic(name, described, self.topics.get(name))
        return ClusterMetadata(
            version=self.version + 1,
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            brokers={
                one.node_id: BrokerMetadata(one.node_id, one.host, one.port, one.rack)
                for one in response.brokers
            },
            topics=topics,
            topic_errors=errors,
            topic_names=_names(topics),
        )

    def with_leaders(
        self,
        leaders: Mapping[TopicPartition, tuple[int, int]],
        endpoints: Iterable[BrokerMetadata],
    ) -> ClusterMetadata:
        """The snapshot after a response that named new leaders (KIP-951): (id, epoch) each.

        Leaders that are not newer than the snapshot are ignored, and so are leaders without a known
        address.
        """
        brokers = {**self.brokers, **{one.node_id: one for one in endpoints}}
        newer: dict[str, dict[int, tuple[int, int]]] = {}
        for (topic, index), (leader, epoch) in leaders.items():
            known = self.partition(topic, index)
            if known is not None and epoch > known.leader_epoch and leader in brokers:
                newer.setdefault(topic, {})[index] = (leader, epoch)
        if not newer:
            return self
        changed = {name: self.topics[name].with_leaders(of) for name, of in newer.items()}
        return replace(
            self, version=self.version + 1, brokers=brokers, topics={**self.topics, **changed}
        )

    def without_topics(self, names: Iterable[str]) -> ClusterMetadata:
        """The snapshot without some topics."""
        gone = set(names)
        topics = {name: topic for name, topic in self.topics.items() if name not in gone}
        errors = {name: error for name, error in self.topic_errors.items() if name not in gone}
        return replace(
            self,
            version=self.version + 1,
            topics=topics,
            topic_errors=errors,
            topic_names=_names(topics),
        )


def _topic(
    name: str, described: MetadataResponseTopic, known: TopicMetadata | None
) -> TopicMetadata:
    rows = sorted(described.partitions, key=lambda one: one.partition_index)
    if any(row.partition_index != position for position, row in enumerate(rows)):
        raise ProtocolError(
            f"the broker described partitions {[row.partition_index for row in rows]} of topic"
            f" {name!r}, which are not those from 0 on",
            message_name="MetadataResponse",
        )
    # The same name with another id is another topic, whose epochs start again.
    same = known is not None and known.topic_id == described.topic_id
    old = known.partitions if same and known is not None else ()
    partitions = tuple(
        _partition(name, row, old[position] if position < len(old) else None)
        for position, row in enumerate(rows)
    )
    return TopicMetadata(
        name=name,
        topic_id=described.topic_id,
        is_internal=described.is_internal,
        partitions=partitions,
        available=_with_leader(partitions),
    )


def _partition(
    topic: str, row: MetadataResponsePartition, known: PartitionMetadata | None
) -> PartitionMetadata:
    if known is not None and NO_EPOCH < row.leader_epoch < known.leader_epoch:
        return known
    return PartitionMetadata(
        topic,
        row.partition_index,
        row.leader_id,
        row.leader_epoch,
        tuple(row.replica_nodes),
        tuple(row.isr_nodes),
        tuple(row.offline_replicas),
    )


def _with_leader(partitions: Iterable[PartitionMetadata]) -> tuple[int, ...]:
    return tuple(one.partition for one in partitions if one.leader != NO_LEADER)


def _names(topics: Mapping[str, TopicMetadata]) -> dict[bytes, str]:
    return {one.topic_id: name for name, one in topics.items() if one.topic_id != ZERO_UUID}
