"""`ClusterMetadata` with kafka-python's methods: what partitioners and programs see of the cluster.

A read-only view of one snapshot (`pyclient.metadata`); any thread may use it.
"""

from collections.abc import Mapping

from pyclient import metadata
from pyclient.types import BrokerMetadata, TopicPartition

__all__ = ["ClusterMetadata"]


class ClusterMetadata:
    """The cluster at one moment, with the methods of kafka-python's class of this name."""

    __slots__ = ("_snapshot",)

    def __init__(self, snapshot: metadata.ClusterMetadata) -> None:
        self._snapshot = snapshot

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, if the broker told it."""
        return self._snapshot.cluster_id

    @property
    def controller(self) -> BrokerMetadata | None:
        """The controller, or the broker that forwards to it; None if it is not known."""
        return self.broker_metadata(self._snapshot.controller_id)

    @property
    def internal_topics(self) -> set[str]:
        """Kafka's own topics."""
        return {name for name, topic in self._snapshot.topics.items() if topic.is_internal}

    @property
    def unauthorized_topics(self) -> set[str]:
        """Topics that the client may not describe."""
        return self._topics_with_error("TopicAuthorizationFailedError")

    @property
    def topic_errors(self) -> Mapping[str, type[Exception]]:
        """The error that the broker gave for a topic, by name."""
        return self._snapshot.topic_errors

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """The topics whose metadata the client has."""
        names = set(self._snapshot.topics)
        return names - self.internal_topics if exclude_internal_topics else names

    def brokers(self) -> set[BrokerMetadata]:
        """All brokers."""
        return set(self._snapshot.brokers.values())

    def broker_metadata(self, broker_id: int | str) -> BrokerMetadata | None:
        """One broker; None if it is not known."""
        return self._snapshot.brokers.get(int(broker_id))

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """All partitions of a topic, those without a leader included; None if it is not known."""
        found = self._snapshot.partitions_for_topic(topic)
        return None if found is None else set(found)

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """The partitions of a topic that have a leader; None if the topic is not known."""
        found = self._snapshot.available_partitions_for_topic(topic)
        return None if found is None else set(found)

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """The leader's id, -1 if there is none; None if the partition is not known."""
        found = self._snapshot.partition(partition.topic, partition.partition)
        return None if found is None else found.leader

    def leader_epoch_for_partition(self, partition: TopicPartition) -> int | None:
        """The leader's epoch; None if the partition is not known."""
        found = self._snapshot.partition(partition.topic, partition.partition)
        return None if found is None else found.leader_epoch

    def is_replica_node(self, partition: TopicPartition, node_id: int) -> BrokerMetadata | None:
        """The broker, if it has a replica of the partition; else None."""
        found = self._snapshot.partition(partition.topic, partition.partition)
        if found is None or node_id not in found.replicas:
            return None
        return self.broker_metadata(node_id)

    def partitions_for_broker(self, broker_id: int) -> set[TopicPartition] | None:
        """The partitions that a broker leads; None if there are none."""
        found = {
            TopicPartition(one.topic, one.partition)
            for topic in self._snapshot.topics.values()
            for one in topic.partitions
            if one.leader == broker_id
        }
        return found or None

    def topic_id(self, topic_name: str) -> bytes | None:
        """The topic's id, 16 bytes; None if it is not known."""
        found = self._snapshot.topics.get(topic_name)
        return None if found is None else found.topic_id

    def topic_name_for_id(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if it is not known."""
        return self._snapshot.topic_name(topic_id)

    def _topics_with_error(self, name: str) -> set[str]:
        errors = self._snapshot.topic_errors
        return {topic for topic, error in errors.items() if error.__name__ == name}

    def __repr__(self) -> str:
        snapshot = self._snapshot
        return f"ClusterMetadata(brokers: {len(snapshot.brokers)}, topics: {len(snapshot.topics)})"
