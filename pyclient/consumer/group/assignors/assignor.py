"""The interface of an assignor: how a group's leader spreads the partitions over the members.

An assignor decides from what it is given and from what `on_assignment` told it, and nothing else.
Every member has its own object; only the leader's `assign` is called.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TypeAlias

from pyclient.consumer.group.consumer_protocol import Assignment, MemberSubscription
from pyclient.metadata import ClusterMetadata

PartitionRacks: TypeAlias = frozenset[str]
"""The racks that hold a replica of a partition; empty where the brokers have none."""

_NO_RACKS: PartitionRacks = frozenset()


class RebalanceProtocol(IntEnum):
    """How members behave in a rebalance; the stronger protocol has the larger number."""

    EAGER = 0
    """Every member gives up all its partitions before it joins."""

    COOPERATIVE = 1
    """Members keep their partitions, and give up only what the new assignment takes away.

    A partition reaches its new owner in a second rebalance, after the old one has revoked it.
    """


class AbstractPartitionAssignor(ABC):
    """Spreads the partitions of a group's topics over its members."""

    name: str
    """What members agree on: only an assignor that all of them name can be chosen."""

    @abstractmethod
    def assign(
        self,
        topics: Mapping[str, Sequence[PartitionRacks]],
        members: Mapping[str, MemberSubscription],
    ) -> Mapping[str, Assignment]:
        """The partitions of each member; a member that is left out gets none.

        Args:
            topics: for each subscribed topic that exists, its partitions in order: element p is
                the racks of partition p.
            members: the subscriptions by member id.
        """

    def assign_from(
        self, snapshot: ClusterMetadata, members: Mapping[str, MemberSubscription]
    ) -> Mapping[str, Assignment]:
        """The same from the cluster's metadata, for an assignor that needs more of it."""
        return self.assign(subscribed_topics(snapshot, members), members)

    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """The rebalance protocols that its assignments are safe under."""
        return (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:  # noqa: ARG002
        """What to tell the leader's assignor when this member joins, subscribed to `topics`."""
        return None

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:  # noqa: B027
        """This member got an assignment by this assignor."""


def in_assignment_order(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Member ids as Kafka's assignors order them: static members by instance id, then the rest.

    Instance ids outlive a restart and member ids do not, so a restarted static member keeps its
    place.
    """

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].group_instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(members, key=place)


def subscribers_by_topic(
    topics: Mapping[str, object], members: Mapping[str, MemberSubscription]
) -> dict[str, list[str]]:
    """The members that read each topic, in assignment order; topics in order of name."""
    subscribers: dict[str, list[str]] = {topic: [] for topic in sorted(topics)}
    for member_id in in_assignment_order(members):
        for topic in dict.fromkeys(members[member_id].topics):
            if topic in subscribers:
                subscribers[topic].append(member_id)
    return subscribers


def subscribed_topics(
    snapshot: ClusterMetadata, members: Mapping[str, MemberSubscription]
) -> dict[str, list[PartitionRacks]]:
    """The racks of the partitions of every subscribed topic that exists."""
    wanted: set[str] = set()
    for subscription in {member.topics for member in members.values()}:
        wanted.update(subscription)
    racks = {node: broker.rack for node, broker in snapshot.brokers.items() if broker.rack}
    known = {topic: snapshot.topics[topic].partitions for topic in wanted & snapshot.topics.keys()}
    if not racks or not any(member.rack_id for member in members.values()):
        return {topic: [_NO_RACKS] * len(partitions) for topic, partitions in known.items()}
    by_replicas: dict[tuple[int, ...], PartitionRacks] = {}  # many partitions share a placement

    def racks_of(replicas: tuple[int, ...]) -> PartitionRacks:
        found = by_replicas.get(replicas)
        if found is None:
            found = frozenset(racks[node] for node in replicas if node in racks)
            by_replicas[replicas] = found
        return found

    return {
        topic: [racks_of(tuple(one.replicas)) for one in partitions]
        for topic, partitions in known.items()
    }
