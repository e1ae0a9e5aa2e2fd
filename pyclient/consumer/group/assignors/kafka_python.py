"""kafka-python's assignors, those of its versions 2 and 3, behind our interface.

They come as classes or as objects with `name`, `metadata(topics)`, `assign(cluster, members)` and
`on_assignment(assignment)` (version 3: and the generation). What they return encodes itself, and
is read back from those bytes; so kafka-python is not needed here.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyclient.consumer.group.assignors.assignor import (
    AbstractPartitionAssignor,
    PartitionRacks,
    RebalanceProtocol,
)
from pyclient.consumer.group.consumer_protocol import (
    Assignment,
    MemberSubscription,
    decode_assignment,
    decode_subscription,
)
from pyclient.errors import KafkaError
from pyclient.metadata import ClusterMetadata
from pyclient.types import BrokerMetadata, TopicPartition

_METHODS = ("assign", "metadata", "on_assignment")


def is_kafka_python_assignor(value: object) -> bool:
    """Whether this is an assignor as kafka-python's users write them, or a class of one."""
    has_methods = all(callable(getattr(value, method, None)) for method in _METHODS)
    return has_methods and hasattr(value, "name")


class KafkaPythonAssignor(AbstractPartitionAssignor):
    """An assignor of kafka-python's interface."""

    def __init__(self, assignor: Any) -> None:
        self._theirs = assignor() if isinstance(assignor, type) else assignor
        self.name = self._theirs.name

    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """What it says; before version 3 there was the eager protocol only."""
        supported = getattr(self._theirs, "supported_protocols", None)
        if supported is None:
            return (RebalanceProtocol.EAGER,)
        return tuple(RebalanceProtocol(int(protocol)) for protocol in supported())

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """The user data in the subscription that it makes."""
        metadata = self._theirs.metadata(set(topics))
        return decode_subscription(self._encoded(metadata), None).user_data

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Tell it, and the generation if it wants to know."""
        told = MemberAssignment(assignment)
        if len(inspect.signature(self._theirs.on_assignment).parameters) > 1:
            self._theirs.on_assignment(told, generation_id)
            return
        self._theirs.on_assignment(told)
        if hasattr(self._theirs, "on_generation_assignment"):  # the sticky one of version 2
            self._theirs.on_generation_assignment(generation_id)

    def assign(
        self,
        topics: Mapping[str, Sequence[PartitionRacks]],
        members: Mapping[str, MemberSubscription],
    ) -> dict[str, Assignment]:
        """Assign knowing the topics only."""
        return self._assign(GroupCluster(ClusterMetadata(), topics), members)

    def assign_from(
        self, snapshot: ClusterMetadata, members: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        """Assign with all that is known of the cluster."""
        subscribed = {topic for member in members.values() for topic in member.topics}
        known = {
            topic: snapshot.topics[topic].partitions
            for topic in sorted(subscribed)
            if topic in snapshot.topics
        }
        return self._assign(GroupCluster(snapshot, known), members)

    def _assign(
        self, cluster: "GroupCluster", members: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        keys = [GroupMember(member_id, member) for member_id, member in members.items()]
        told = {key: key.metadata for key in keys}
        return {
            str(member_id): decode_assignment(self._encoded(assignment))
            for member_id, assignment in self._theirs.assign(cluster, told).items()
        }

    def _encoded(self, message: Any) -> bytes:
        if isinstance(message, bytes):
            return message
        encode = getattr(message, "encode", None)
        data = None if encode is None or isinstance(message, str) else encode()
        if not isinstance(data, bytes):
            raise KafkaError(
                f"the assignor {self.name!r} returned {message!r}, which does not encode to bytes"
            )
        return data


class OwnedPartitions(NamedTuple):
    """Partitions of one topic."""

    topic: str
    partitions: list[int]


class Subscription:
    """What a member told, by the names of all of kafka-python's versions."""

    def __init__(self, member: MemberSubscription) -> None:
        self.version = 3
        self.topics = list(member.topics)
        self.subscription = self.topics  # its name before version 2.3
        self.user_data = member.user_data or b""
        self.group_instance_id = member.group_instance_id
        self.owned_partitions = [
            OwnedPartitions(topic, list(numbers))
            for topic, numbers in member.owned_partitions.items()
        ]
        self.generation_id = member.generation_id
        self.rack_id = member.rack_id


class GroupMember(str):
    """A member id with the attributes of a JoinGroup member.

    Version 2 hands assignors a dict of subscriptions by member id, version 3 a list of members:
    a dict with these keys is both.
    """

    __slots__ = ("group_instance_id", "member_id", "metadata")
    member_id: str
    group_instance_id: str | None
    metadata: Subscription

    def __new__(cls, member_id: str, member: MemberSubscription) -> "GroupMember":
        """A member of this id."""
        self = super().__new__(cls, member_id)
        self.member_id = member_id
        self.group_instance_id = member.group_instance_id
        self.metadata = Subscription(member)
        return self


class MemberAssignment:
    """What a member is to read, by the names of all of kafka-python's versions."""

    def __init__(self, assignment: Assignment) -> None:
        self.version = 3
        self.assigned_partitions = [
            (topic, list(numbers)) for topic, numbers in assignment.partitions.items()
        ]
        self.assignment = self.assigned_partitions
        self.user_data = assignment.user_data or b""

    def partitions(self) -> list[TopicPartition]:
        """The partitions one by one."""
        return [TopicPartition(topic, n) for topic, ns in self.assigned_partitions for n in ns]


class GroupCluster:
    """The topics of a group and the brokers, as kafka-python's `ClusterMetadata` tells them."""

    def __init__(self, snapshot: ClusterMetadata, topics: Mapping[str, Sequence[object]]) -> None:
        self._snapshot = snapshot
        self._topics = topics

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:  # noqa: ARG002
        """The topics that the group reads and that exist."""
        return set(self._topics)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """All partitions of a topic; None if it is not known."""
        found = self._topics.get(topic)
        return None if found is None else set(range(len(found)))

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """The partitions of a topic that have a leader; None if it is not known."""
        found = self._snapshot.available_partitions_for_topic(topic)
        return None if found is None else set(found)

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """The leader's id; None if the partition is not known, -1 if it has none."""
        found = self._snapshot.partition(partition.topic, partition.partition)
        return None if found is None else found.leader

    def leader_epoch_for_partition(self, partition: TopicPartition) -> int:
        """The leader's epoch; -1 if it is not known."""
        return self._snapshot.leader_epoch_for_partition(partition)

    def partitions_for_broker(self, broker_id: int) -> set[TopicPartition]:
        """The partitions that a broker leads."""
        return {
            TopicPartition(topic, one.partition)
            for topic in self._topics
            if topic in self._snapshot.topics
            for one in self._snapshot.topics[topic].partitions
            if one.leader == broker_id
        }

    def brokers(self) -> set[BrokerMetadata]:
        return set(self._snapshot.brokers.values())

    def broker_metadata(self, broker_id: int) -> BrokerMetadata | None:
        """One broker; None if it is not known."""
        return self._snapshot.brokers.get(int(broker_id))
