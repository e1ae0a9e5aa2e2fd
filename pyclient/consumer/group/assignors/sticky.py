"""Sticky and cooperative-sticky: as balanced as possible, and members keep what they had.

Both decide the same way and differ in how a member says what it had. `sticky` is eager: members
give everything up before they join, so the previous assignment travels in the user data.
`cooperative-sticky` reads the owned partitions of the subscription, and leaves out of the result
what another member still owns: that partition is given away in the next rebalance, after its owner
has revoked it (KIP-429).
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyclient.consumer.group.assignors.assignor import (
    AbstractPartitionAssignor,
    PartitionRacks,
    RebalanceProtocol,
)
from pyclient.consumer.group.assignors.sticky_claims import NOBODY, Claims, PartitionIds
from pyclient.consumer.group.assignors.sticky_general import Block, GeneralAssignment, Readers
from pyclient.consumer.group.assignors.sticky_uniform import assign_uniform
from pyclient.consumer.group.consumer_protocol import Assignment, MemberSubscription
from pyclient.consumer.group.topic_partitions import (
    PartitionsByTopic,
    decode_partitions,
    encode_partitions,
)
from pyclient.errors import ProtocolError

_NO_GENERATION = -1
_INT32 = struct.Struct(">i")


class PreviousAssignment(NamedTuple):
    """What a member says that it had, and in which generation."""

    partitions: PartitionsByTopic
    generation_id: int


class StickyPartitionAssignor(AbstractPartitionAssignor):
    """Balanced, and members keep as much of their previous assignment as balance allows."""

    name = "sticky"

    def __init__(self) -> None:
        self._assigned: PreviousAssignment | None = None

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:  # noqa: ARG002
        """The previous assignment of this member, as Java's StickyAssignor writes it."""
        if self._assigned is None:
            return None
        partitions, generation_id = self._assigned
        return encode_partitions(partitions) + _INT32.pack(generation_id)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Keep the assignment, for the next time this member joins."""
        self._assigned = PreviousAssignment(assignment.partitions, generation_id)

    def assign(
        self,
        topics: Mapping[str, Sequence[PartitionRacks]],
        members: Mapping[str, MemberSubscription],
    ) -> dict[str, Assignment]:
        """Assign all partitions at once."""
        return _StickyGroup(topics, members, self.previous_assignment).assignments()

    def previous_assignment(self, member: MemberSubscription) -> PreviousAssignment:
        """What the member had, by its user data."""
        return _decode_user_data(member.user_data or b"")


class CooperativeStickyAssignor(AbstractPartitionAssignor):
    """Sticky, for members that keep their partitions while the group rebalances."""

    name = "cooperative-sticky"

    def __init__(self) -> None:
        self._generation_id = _NO_GENERATION

    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """Both: beside an eager assignor it is eager."""
        return (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:  # noqa: ARG002
        """The generation, for leaders that know no newer subscription than version 1."""
        return _INT32.pack(self._generation_id)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:  # noqa: ARG002
        """Keep the generation, for the next time this member joins."""
        self._generation_id = generation_id

    def assign(
        self,
        topics: Mapping[str, Sequence[PartitionRacks]],
        members: Mapping[str, MemberSubscription],
    ) -> dict[str, Assignment]:
        """Assign all partitions but those that another member has to revoke first."""
        return _StickyGroup(topics, members, self.previous_assignment).unowned_assignments()

    def previous_assignment(self, member: MemberSubscription) -> PreviousAssignment:
        """What the member owns; before version 2 the generation is in the user data."""
        generation_id = member.generation_id
        if generation_id < 0 and member.user_data and len(member.user_data) >= _INT32.size:
            (generation_id,) = _INT32.unpack_from(member.user_data)
        return PreviousAssignment(member.owned_partitions, max(generation_id, _NO_GENERATION))


class _StickyGroup:
    """A group whose members had something before, by numbers in place of names."""

    def __init__(
        self,
        topics: Mapping[str, Sequence[PartitionRacks]],
        members: Mapping[str, MemberSubscription],
        previous_assignment: Callable[[MemberSubscription], PreviousAssignment],
    ) -> None:
        self._names = sorted(members)
        self._racks = [members[name].rack_id for name in self._names]
        subscriptions = [members[name].topics for name in self._names]
        self._subscriptions = _known_topics(subscriptions, topics)
        read = frozenset[str]().union(*self._subscriptions)
        self._topics = {topic: topics[topic] for topic in sorted(read)}
        self._ids = PartitionIds({topic: len(racks) for topic, racks in self._topics.items()})
        previous = [previous_assignment(members[name]) for name in self._names]
        self._claims = Claims(
            len(self._ids),
            [self._ids.of(one.partitions) for one in previous],
            [one.generation_id for one in previous],
        )

    def assignments(self) -> dict[str, Assignment]:
        """All partitions, each to its new owner."""
        decided = self._decide()
        return {
            name: Assignment(self._ids.by_topic(partitions))
            for name, partitions in zip(self._names, decided, strict=True)
        }

    def unowned_assignments(self) -> dict[str, Assignment]:
        """The partitions that their new owner owns already, or that nobody claims."""
        owners, contested = self._claims.owners, self._claims.contested
        found = {}
        for member, partitions in enumerate(self._decide()):
            mine = [one for one in partitions if owners[one] in (member, NOBODY)]
            if contested:
                mine = [one for one in mine if one not in contested]
            found[self._names[member]] = Assignment(self._ids.by_topic(mine))
        return found

    def _decide(self) -> list[list[int]]:
        """The partition ids of each member."""
        if not self._names:
            return []
        owners = self._claims.owners
        if self._rack_aware():
            stay, near = (
                GeneralAssignment(self._blocks(by_rack=True), len(self._names), owners, keep_far)
                for keep_far in (True, False)
            )
            # Moving to other racks has to pay, or members would swap partitions for ever.
            return (near if near.near_count() > stay.near_count() else stay).partitions()
        if len(set(self._subscriptions)) > 1:
            blocks = self._blocks(by_rack=False)
            return GeneralAssignment(blocks, len(self._names), owners).partitions()
        owned: list[list[int]] = [[] for _ in self._names]
        for partition, owner in enumerate(owners):
            if owner != NOBODY:
                owned[owner].append(partition)
        return assign_uniform(owned, self._ids.numbers)

    def _rack_aware(self) -> bool:
        """Whether members differ in which partitions they find on their rack."""
        member_racks = {rack for rack in self._racks if rack}
        if not member_racks:
            return False
        placements = {racks for topic in self._topics.values() for racks in topic}
        all_racks = frozenset[str]().union(*placements)
        return not member_racks.isdisjoint(all_racks) and placements != {all_racks}

    def _blocks(self, by_rack: bool) -> Iterator[Block]:
        """The partitions of each topic, those with replicas on the same racks together."""
        members: dict[str, list[int]] = {topic: [] for topic in self._topics}
        for member, topics in enumerate(self._subscriptions):
            for topic in topics:
                members[topic].append(member)
        shared: dict[tuple[int, ...], Readers] = {}  # many topics have the same readers

        def readers_of(found: Sequence[int]) -> Readers:
            key = tuple(found)
            if key not in shared:
                shared[key] = Readers(key)
            return shared[key]

        for topic, start in zip(self._ids.topics, self._ids.starts, strict=True):
            readers = readers_of(members[topic])
            racks = self._topics[topic]
            if not by_rack:
                yield Block(range(start, start + len(racks)), readers, readers)
                continue
            alike: dict[PartitionRacks, list[int]] = {}
            for partition, placement in enumerate(racks, start):
                alike.setdefault(placement, []).append(partition)
            for placement, partitions in alike.items():
                near = [
                    m for m in readers.members if (self._racks[m] or None) in {None, *placement}
                ]
                yield Block(partitions, readers, readers_of(near))


def _known_topics(
    subscriptions: Sequence[tuple[str, ...]], topics: Mapping[str, object]
) -> list[frozenset[str]]:
    """The topics of each subscription that exist; equal ones are one object."""
    known = {
        one: frozenset(topic for topic in one if topic in topics) for one in set(subscriptions)
    }
    return [known[one] for one in subscriptions]


def _decode_user_data(data: bytes) -> PreviousAssignment:
    """The sticky assignor's user data; an assignment that can't be read is none.

    Its first version had no generation. kafka-python 3 puts a version in front.
    """
    for start in (0, 2):
        try:
            partitions, end = decode_partitions(data, start)
        except ProtocolError:
            continue
        if len(data) - end >= _INT32.size:
            return PreviousAssignment(partitions, _INT32.unpack_from(data, end)[0])
        return PreviousAssignment(partitions, _NO_GENERATION)
    return PreviousAssignment({}, _NO_GENERATION)
