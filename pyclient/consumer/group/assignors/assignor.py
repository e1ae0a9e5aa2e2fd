"""The interface of an assignor: how a group's leader spreads the partitions over the members.

An assignor decides from what it is given and nothing else; it runs on the leader's I/O thread.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from pyclient.types import TopicPartition

PartitionRacks: TypeAlias = frozenset[str]
"""The racks that hold a replica of a partition; empty where the brokers have none."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What one member told the leader about itself."""

    topics: tuple[str, ...]
    group_instance_id: str | None = None
    rack_id: str | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = -1
    user_data: bytes | None = None


class AbstractPartitionAssignor(ABC):
    """Spreads the partitions of a group's topics over its members."""

    name: ClassVar[str]
    """What members agree on: only an assignor that all of them name can be chosen."""

    @abstractmethod
    def assign(
        self,
        topics: Mapping[str, Sequence[PartitionRacks]],
        members: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """The partitions of each member, every member named.

        Args:
            topics: for each subscribed topic that exists, its partitions in order: element p is
                the racks of partition p.
            members: the subscriptions by member id.
        """


def in_assignment_order(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Member ids as Kafka's assignors order them: static members by instance id, then the rest.

    Instance ids outlive a restart and member ids do not, so a restarted static member finds
    itself at its old place.
    """

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].group_instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(members, key=place)
