"""What the members of a group owned before, on dense numbers instead of names.

Partitions get ids from 0 on, in order of topic and number, and members get indexes in assignment
order: the sticky algorithms work on lists of integers.
"""

import logging
from collections.abc import Mapping, Sequence

from pyclient.consumer.group.topic_partitions import PartitionsByTopic

log = logging.getLogger(__name__)

NOBODY = -1


class PartitionIds:
    """The ids of all partitions of some topics.

    Attributes:
        topics: the topics in order of name.
        starts: the id of partition 0 of each.
        numbers: for each id the partition's number in its topic.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.topics = sorted(counts)
        self.starts: list[int] = []
        self.numbers: list[int] = []
        self._names: list[str] = []
        for topic in self.topics:
            self.starts.append(len(self.numbers))
            self.numbers.extend(range(counts[topic]))
            self._names.extend([topic] * counts[topic])
        self._ranges = {
            topic: (start, counts[topic])
            for topic, start in zip(self.topics, self.starts, strict=True)
        }

    def __len__(self) -> int:
        return len(self.numbers)

    def of(self, partitions: PartitionsByTopic) -> list[int]:
        """The ids of partitions; those that do not exist any more are left out."""
        ids: list[int] = []
        ranges = self._ranges
        for topic, numbers in partitions.items():
            if topic in ranges:
                start, count = ranges[topic]
                for number in numbers:
                    if 0 <= number < count:
                        ids.append(start + number)  # noqa: PERF401  mostly one a topic
        return ids

    def by_topic(self, ids: Sequence[int]) -> dict[str, list[int]]:
        """The partitions of some ids, in order of topic and number."""
        found: dict[str, list[int]] = {}
        names, numbers = self._names, self.numbers
        for partition in sorted(ids):
            name = names[partition]
            if name in found:
                found[name].append(numbers[partition])
            else:
                found[name] = [numbers[partition]]
        return found


class Claims:
    """Who owned which partition.

    Of two claims to a partition the one of the newer generation counts. Where both are of the
    same generation neither counts: one of the two members is wrong, and both have to give the
    partition up.

    Attributes:
        owners: the member whose claim counts, by partition id; `NOBODY` if there is none.
        contested: the partitions whose newest claims contradict each other.
    """

    def __init__(
        self, partition_count: int, claimed: Sequence[list[int]], generations: Sequence[int]
    ) -> None:
        self.owners = owners = [NOBODY] * partition_count
        self.contested: set[int] = set()
        newest_first = sorted(range(len(claimed)), key=lambda member: -generations[member])
        for member in newest_first:
            for partition in claimed[member]:
                owner = owners[partition]
                if owner == NOBODY:
                    owners[partition] = member
                elif owner != member and generations[owner] == generations[member]:
                    self.contested.add(partition)
        for partition in self.contested:
            owners[partition] = NOBODY
        if self.contested:
            log.warning(
                "%d partitions are claimed by several members in the same generation: all of "
                "them lose these partitions",
                len(self.contested),
            )
