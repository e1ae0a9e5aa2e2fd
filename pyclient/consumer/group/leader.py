"""What the leader of a generation does: read the members' subscriptions, and assign."""

from collections.abc import Iterable, Mapping

from pyclient.consumer.group.assignors import (
    AbstractPartitionAssignor,
    Assignment,
    CooperativeStickyAssignor,
    RebalanceProtocol,
)
from pyclient.consumer.group.consumer_protocol import decode_subscriptions, encode_assignment
from pyclient.consumer.group.topic_partitions import flat
from pyclient.errors import KafkaError
from pyclient.metadata import ClusterMetadata
from pyclient.protocol.messages.join_group import JoinGroupResponseMember
from pyclient.protocol.messages.sync_group import SyncGroupRequestAssignment
from pyclient.types import TopicPartition


class GroupLeader:
    """The leader's view of one generation.

    Owned by the I/O thread. Another thread may run `assign` while the I/O thread only waits for it.
    """

    def __init__(
        self,
        assignor: AbstractPartitionAssignor,
        members: Iterable[JoinGroupResponseMember],
        protocol: RebalanceProtocol = RebalanceProtocol.EAGER,
        keeps_assignment: bool = False,
    ) -> None:
        """`protocol` is what the members of the group rebalance by.

        `keeps_assignment`: a static leader is back, and the assignment of its group stands.
        """
        self._assignor = assignor
        self._protocol = protocol
        self._keeps_assignment = keeps_assignment
        self._members = decode_subscriptions(members)
        subscriptions = {member.topics for member in self._members.values()}
        self._topics = frozenset(topic for topics in subscriptions for topic in topics)
        self._counts: dict[str, int] = {}

    @property
    def topics(self) -> frozenset[str]:
        """All topics that the members read."""
        return self._topics

    def knows_all(self, snapshot: ClusterMetadata) -> bool:
        """Whether the snapshot has an answer about each of the topics."""
        return all(t in snapshot.topics or t in snapshot.topic_errors for t in self._topics)

    def assign(self, snapshot: ClusterMetadata) -> list[SyncGroupRequestAssignment]:
        """Who is to read what, of the topics that there are; nothing if the assignment stands.

        Raises:
            KafkaError: an assignor of the program gave partitions away that members still own,
                in a cooperative group.
        """
        self._counts = self._count(snapshot)
        if self._keeps_assignment:
            return []
        assignments = self._assignor.assign_from(snapshot, self._members)
        if self._protocol is RebalanceProtocol.COOPERATIVE and not isinstance(
            self._assignor, CooperativeStickyAssignor
        ):
            self._check_cooperative(assignments)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=encode_assignment(assignment)
            )
            for member_id, assignment in assignments.items()
        ]

    def on_assignment(self, member_id: str, assignment: Assignment) -> None:
        """Take the leader's own share: an assignment that stands may lack partitions.

        It may be from before partitions came, or from metadata that lacked a topic for a moment.
        Java's leader takes it for complete, and nobody owns those until the next rebalance. A
        leader does not see the shares of others, so it looks at the topics that it alone reads.
        """
        if not self._keeps_assignment:
            return
        others = [one.topics for other, one in self._members.items() if other != member_id]
        for topic in self._counts.keys() - frozenset().union(*others):
            self._counts[topic] = len(assignment.partitions.get(topic, ()))

    def is_outdated(self, snapshot: ClusterMetadata) -> bool:
        """Whether topics or partitions came or went since."""
        return self._count(snapshot) != self._counts

    def _count(self, snapshot: ClusterMetadata) -> dict[str, int]:
        return {
            topic: len(snapshot.topics[topic].partitions)
            for topic in self._topics
            if topic in snapshot.topics
        }

    def _check_cooperative(self, assignments: Mapping[str, Assignment]) -> None:
        """Refuse an assignment by which two members would read a partition at the same time."""
        added: dict[TopicPartition, str] = {}
        revoked: set[TopicPartition] = set()
        for member_id, member in self._members.items():
            owned = set(flat(member.owned_partitions))
            assigned = set(assignments.get(member_id, Assignment()).topic_partitions())
            added.update(dict.fromkeys(assigned - owned, member_id))
            revoked |= owned - assigned
        for partition in sorted(revoked & added.keys()):
            raise KafkaError(
                f"the assignor {self._assignor.name!r} gives partition {partition.partition} of "
                f"topic {partition.topic!r} to {added[partition]} while another member owns it: a "
                "cooperative assignor leaves it out until its owner has revoked it"
            )
