"""What the leader of a generation does: read the members' subscriptions, and assign."""

from collections.abc import Iterable, Mapping

from pyclient.consumer.group.assignors import (
    AbstractPartitionAssignor,
    MemberSubscription,
    PartitionRacks,
)
from pyclient.consumer.group.consumer_protocol import decode_subscription, encode_assignment
from pyclient.metadata import ClusterMetadata
from pyclient.protocol.messages.join_group import JoinGroupResponseMember
from pyclient.protocol.messages.sync_group import SyncGroupRequestAssignment


class GroupLeader:
    """The leader's view of one generation. The I/O thread only."""

    def __init__(
        self, assignor: AbstractPartitionAssignor, members: Iterable[JoinGroupResponseMember]
    ) -> None:
        self._assignor = assignor
        self._members: Mapping[str, MemberSubscription] = {
            member.member_id: decode_subscription(member.metadata, member.group_instance_id)
            for member in members
        }
        self._counts: dict[str, int] = {}

    @property
    def topics(self) -> frozenset[str]:
        """All topics that the members read."""
        return frozenset(topic for member in self._members.values() for topic in member.topics)

    def knows_all(self, snapshot: ClusterMetadata) -> bool:
        """Whether the snapshot has an answer about each of the topics."""
        return all(t in snapshot.topics or t in snapshot.topic_errors for t in self.topics)

    def assign(self, snapshot: ClusterMetadata) -> list[SyncGroupRequestAssignment]:
        """Who is to read what, of the topics that there are."""
        topics = {
            topic: _racks(snapshot, topic) for topic in self.topics if topic in snapshot.topics
        }
        self.observe(snapshot)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=encode_assignment(partitions)
            )
            for member_id, partitions in self._assignor.assign(topics, self._members).items()
        ]

    def observe(self, snapshot: ClusterMetadata) -> None:
        """The assignment is one of this snapshot."""
        self._counts = self._count(snapshot)

    def is_outdated(self, snapshot: ClusterMetadata) -> bool:
        """Whether topics or partitions came or went since."""
        return self._count(snapshot) != self._counts

    def _count(self, snapshot: ClusterMetadata) -> dict[str, int]:
        return {
            topic: len(snapshot.topics[topic].partitions)
            for topic in self.topics
            if topic in snapshot.topics
        }


def _racks(snapshot: ClusterMetadata, topic: str) -> list[PartitionRacks]:
    brokers = snapshot.brokers
    return [
        frozenset(
            rack
            for replica in partition.replicas
            if replica in brokers and (rack := brokers[replica].rack)
        )
        for partition in snapshot.topics[topic].partitions
    ]
