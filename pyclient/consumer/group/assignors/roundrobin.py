"""Round robin: all partitions of all topics in order, dealt to the members in turn."""

from collections.abc import Mapping, Sequence

from pyclient.consumer.group.assignors.assignor import (
    AbstractPartitionAssignor,
    PartitionRacks,
    in_assignment_order,
    subscribers_by_topic,
)
from pyclient.consumer.group.consumer_protocol import Assignment, MemberSubscription


class RoundRobinPartitionAssignor(AbstractPartitionAssignor):
    """Deals partitions to members in turn, passing over members that do not read the topic."""

    name = "roundrobin"

    def assign(
        self,
        topics: Mapping[str, Sequence[PartitionRacks]],
        members: Mapping[str, MemberSubscription],
    ) -> dict[str, Assignment]:
        """Deal the partitions in order of topic name and number."""
        ordered = in_assignment_order(members)
        places = {member_id: place for place, member_id in enumerate(ordered)}
        assigned: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in members}
        next_place = 0
        for topic, readers in subscribers_by_topic(topics, members).items():
            count = len(topics[topic])
            if not readers or not count:
                continue
            # The first reader at or behind the place where the topic before has ended.
            start = next((n for n, reader in enumerate(readers) if places[reader] >= next_place), 0)
            in_turn = readers[start:] + readers[:start]
            for turn, member_id in enumerate(in_turn[:count]):
                assigned[member_id][topic] = list(range(turn, count, len(in_turn)))
            next_place = places[in_turn[(count - 1) % len(in_turn)]] + 1
        return {member_id: Assignment(partitions) for member_id, partitions in assigned.items()}
