"""Round robin: all partitions of all topics in order, dealt to the members in turn."""

from collections.abc import Mapping, Sequence
from itertools import chain, cycle

from pyclient.consumer.group.assignors.assignor import (
    AbstractPartitionAssignor,
    MemberSubscription,
    PartitionRacks,
    in_assignment_order,
)
from pyclient.types import TopicPartition


class RoundRobinPartitionAssignor(AbstractPartitionAssignor):
    """Deals partitions to members in turn, passing over members that do not read the topic."""

    name = "roundrobin"

    def assign(
        self,
        topics: Mapping[str, Sequence[PartitionRacks]],
        members: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """Deal the partitions in order of topic name and number."""
        assignment: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        wanted = set(chain.from_iterable(member.topics for member in members.values()))
        in_turn = cycle(in_assignment_order(members))
        for topic in sorted(wanted & topics.keys()):
            for partition in range(len(topics[topic])):
                # Ends: somebody reads every wanted topic.
                member_id = next(name for name in in_turn if topic in members[name].topics)
                assignment[member_id].append(TopicPartition(topic, partition))
        return assignment
