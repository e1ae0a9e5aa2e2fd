"""The leader's work in large groups: `python -m tests.benchmarks.assignors`.

From the members' subscriptions as bytes to their assignments as bytes, in a group that starts,
loses a member and gains one; all members read all topics (even), or three quarters of them
(uneven). With `--small` only the group of 1,000 members.

Times are seconds of CPU on this machine: one thread does the work; the bars are 1 s for
20,000 partitions and 10 s for a million.
"""

import argparse
import gc
import sys
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyclient.consumer.group.assignors import Assignment, MemberSubscription, configured_assignors
from pyclient.consumer.group.consumer_protocol import decode_assignment, encode_subscription
from pyclient.consumer.group.leader import GroupLeader
from pyclient.consumer.group.topic_partitions import PartitionsByTopic, flat
from pyclient.metadata import ClusterMetadata, TopicMetadata
from pyclient.protocol.messages.join_group import JoinGroupResponseMember
from pyclient.types import BrokerMetadata, PartitionMetadata

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
RACKS = ("r0", "r1", "r2")


class Size(NamedTuple):
    """A group and its topics."""

    members: int
    topics: int
    partitions_each: int
    seconds_max: float


SIZES = (Size(1_000, 10, 2_000, 1.0), Size(2_000, 500, 2_000, 10.0))


class Group:
    """A group that rebalances by one assignor."""

    def __init__(self, assignor: str, size: Size, even: bool, racks: bool) -> None:
        self._assignor = assignor
        self._size = size
        self._even = even
        self._racks = racks
        self._snapshot = snapshot(size)
        self._owned: Mapping[str, PartitionsByTopic] = {}
        self._generation = 0

    def rebalance(self, numbers: Iterable[int]) -> tuple[float, int]:
        """One rebalance of these members: CPU seconds, and how many partitions moved."""
        joined = [self._join(number) for number in numbers]
        (assignor,) = configured_assignors([self._assignor])
        gc.collect()
        start = time.process_time()
        assigned = GroupLeader(assignor, joined).assign(self._snapshot)
        taken = time.process_time() - start
        owned = {one.member_id: decode_assignment(one.assignment).partitions for one in assigned}
        before = {partition: name for name, mine in self._owned.items() for partition in flat(mine)}
        moved = sum(
            before.get(partition, name) != name
            for name, mine in owned.items()
            for partition in flat(mine)
        )
        self._owned = owned
        self._generation += 1
        return taken, moved

    def _join(self, number: int) -> JoinGroupResponseMember:
        name = f"member-{number:05}"
        owned = self._owned.get(name, {})
        (assignor,) = configured_assignors([self._assignor])
        topics = tuple(
            topic_name(topic)
            for topic in range(self._size.topics)
            if self._even or (number * 7 + topic * 13) % 4
        )
        if owned:
            assignor.on_assignment(Assignment(owned), self._generation)
        subscription = MemberSubscription(
            topics=topics,
            rack_id=RACKS[number % 3] if self._racks else None,
            owned_partitions=owned if self._assignor == "cooperative-sticky" else {},
            generation_id=self._generation if owned else -1,
            user_data=assignor.subscription_user_data(frozenset(topics)),
        )
        return JoinGroupResponseMember(member_id=name, metadata=encode_subscription(subscription))


def topic_name(number: int) -> str:
    return f"topic-{number:04}"


def snapshot(size: Size) -> ClusterMetadata:
    """A cluster of six brokers on three racks, two replicas of everything."""
    return ClusterMetadata(
        brokers={node: BrokerMetadata(node, "host", 9092, RACKS[node % 3]) for node in range(6)},
        topics={
            topic_name(number): TopicMetadata(
                topic_name(number),
                number.to_bytes(16, "big"),
                False,
                tuple(
                    PartitionMetadata(
                        topic_name(number), one, one % 6, 0, (one % 6, (one + 1) % 6), (), ()
                    )
                    for one in range(size.partitions_each)
                ),
                (),
            )
            for number in range(size.topics)
        },
    )


def main() -> int:
    """Print the table; 1 if a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--assignor", choices=ASSIGNORS, action="append")
    parser.add_argument("--racks", action="store_true", help="members and brokers have racks")
    options = parser.parse_args()
    missed = 0
    print(
        f"{'assignor':19} {'topics':7} {'members':>7} {'partitions':>10} "
        f"{'starts':>8} {'leaves':>8} {'joins':>8}  moved"
    )
    for size in SIZES[: 1 if options.small else None]:
        for assignor in options.assignor or ASSIGNORS:
            for even in (True, False):
                group = Group(assignor, size, even, options.racks)
                everybody = range(size.members)
                rows = [
                    group.rebalance(everybody),
                    group.rebalance(everybody[1:]),
                    group.rebalance([*everybody[1:], size.members]),
                ]
                late = any(taken > size.seconds_max for taken, _ in rows)
                missed += late
                print(
                    f"{assignor:19} {'even' if even else 'uneven':7} {size.members:7} "
                    f"{size.topics * size.partitions_each:10} "
                    + " ".join(f"{taken:7.3f}s" for taken, _ in rows)
                    + f"  {rows[1][1]} and {rows[2][1]}"
                    + (f"  MISSED {size.seconds_max} s" if late else ""),
                    flush=True,
                )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
