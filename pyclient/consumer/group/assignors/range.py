"""Range: each topic on its own, cut into consecutive ranges, one for each of its readers.

Topics with as many partitions and the same readers get the same cut, so that partition p of each
goes to the same member: what joins of co-partitioned topics rely on. Where racks are known, and
replicas are not on every rack, members first take partitions that have a replica on their own
rack (KIP-881); balance and co-partitioning go before racks.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from pyclient.consumer.group.assignors.assignor import (
    AbstractPartitionAssignor,
    PartitionRacks,
    subscribers_by_topic,
)
from pyclient.consumer.group.consumer_protocol import Assignment, MemberSubscription


class RangePartitionAssignor(AbstractPartitionAssignor):
    """Gives each reader of a topic a range of its partitions, the first readers one more."""

    name = "range"

    def assign(
        self,
        topics: Mapping[str, Sequence[PartitionRacks]],
        members: Mapping[str, MemberSubscription],
    ) -> dict[str, Assignment]:
        """Cut every topic; the result is in order of topic name and number."""
        assigned: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in members}
        readers_by_topic = subscribers_by_topic(topics, members)
        if any(member.rack_id for member in members.values()):
            cuts = _cut_within_racks(topics, members, readers_by_topic)
        else:
            cuts = {
                topic: _cut(len(topics[topic]), readers)
                for topic, readers in readers_by_topic.items()
            }
        for topic, cut in cuts.items():
            for member_id, numbers in cut:
                assigned[member_id][topic] = numbers
        return {member_id: Assignment(partitions) for member_id, partitions in assigned.items()}


def _cut(count: int, readers: Sequence[str]) -> Iterator[tuple[str, list[int]]]:
    """Ranges of one length, the first ones longer by one."""
    quota, extras = divmod(count, max(1, len(readers)))
    start = 0
    for place, member_id in enumerate(readers[:count]):
        end = start + quota + (place < extras)
        yield member_id, list(range(start, end))
        start = end


def _cut_within_racks(
    topics: Mapping[str, Sequence[PartitionRacks]],
    members: Mapping[str, MemberSubscription],
    readers_by_topic: Mapping[str, Sequence[str]],
) -> dict[str, Iterator[tuple[str, list[int]]]]:
    shares = {
        topic: _TopicShares(topics[topic], {m: members[m].rack_id for m in readers})
        for topic, readers in readers_by_topic.items()
    }
    if any(topic.rack_aware for topic in shares.values()):
        _assign_within_racks(list(shares.values()))
    return {topic: share.cut() for topic, share in shares.items()}


class _TopicShares:
    """One topic while it is dealt out: what is left, and how much each reader may still take."""

    def __init__(
        self, racks: Sequence[PartitionRacks], rack_of_member: dict[str, str | None]
    ) -> None:
        self.rack_of_member = rack_of_member
        self.assigned: dict[str, list[int]] = {member_id: [] for member_id in rack_of_member}
        self.partition_count = len(racks)
        self._racks = racks
        self._unassigned = dict.fromkeys(range(len(racks)))  # a set that keeps its order
        self._quota, self._extras = divmod(len(racks), max(1, len(rack_of_member)))
        member_racks = {rack for rack in rack_of_member.values() if rack}
        all_racks = frozenset().union(*racks)
        # With a replica of everything on every rack, any assignment is within the racks.
        self.rack_aware = not member_racks.isdisjoint(all_racks) and any(
            partition_racks != all_racks for partition_racks in racks
        )

    def room(self, member_id: str) -> int:
        """How many more partitions the member may take."""
        return self._quota + (self._extras > 0) - len(self.assigned[member_id])

    def same_rack(self, member_id: str, partition: int) -> bool:
        """Whether the member has a replica on its rack; one without a rack is at home anywhere."""
        rack = self.rack_of_member[member_id]
        return not rack or rack in self._racks[partition]

    def give(self, member_id: str, partitions: Sequence[int]) -> None:
        """Move partitions from the pile to the member."""
        mine = self.assigned[member_id]
        for partition in partitions:
            mine.append(partition)
            del self._unassigned[partition]
        if partitions and len(mine) > self._quota:
            self._extras -= 1

    def cut(self) -> Iterator[tuple[str, list[int]]]:
        """What each reader has once the partitions that are left are dealt out."""
        self._deal()
        for member_id, numbers in self.assigned.items():
            if numbers:
                yield member_id, sorted(numbers)

    def _deal(self) -> None:
        """Let each reader in turn take the first partitions left, up to its room."""
        left = list(self._unassigned)
        start = 0
        for member_id in self.assigned:
            taken = left[start : start + max(0, self.room(member_id))]
            start += len(taken)
            self.give(member_id, taken)

    def deal_within_racks(self) -> None:
        """Let each reader in turn take the first partitions on its rack, up to its room."""
        for member_id in self.assigned:
            fitting = (p for p in self._unassigned if self.same_rack(member_id, p))
            self.give(member_id, list(islice(fitting, max(0, self.room(member_id)))))


def _assign_within_racks(shares: Sequence[_TopicShares]) -> None:
    co_partitioned: dict[tuple[frozenset[str], int], list[_TopicShares]] = {}
    for topic in shares:
        key = frozenset(topic.rack_of_member), topic.partition_count
        co_partitioned.setdefault(key, []).append(topic)
    for together in co_partitioned.values():
        if len(together) > 1:
            _assign_together(together)
        elif together[0].rack_aware:
            together[0].deal_within_racks()


def _assign_together(topics: Sequence[_TopicShares]) -> None:
    """Give partition p of all the topics to the first reader that has all of them on its rack."""
    for partition in range(topics[0].partition_count):
        for member_id in topics[0].assigned:
            if all(t.same_rack(member_id, partition) and t.room(member_id) > 0 for t in topics):
                for topic in topics:
                    topic.give(member_id, [partition])
                break
