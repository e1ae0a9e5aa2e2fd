"""The sticky assignors against Apache Kafka's own, on groups that the golden file has not.

Neither is the best possible: in one of a hundred groups whose members read different topics the
one is more balanced and the other stickier. So single groups are compared where members read the
same topics, and the others as a whole.
"""

import random
import subprocess
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

from pyclient.consumer.group.assignors import (
    AbstractPartitionAssignor,
    Assignment,
    CooperativeStickyAssignor,
    MemberSubscription,
    StickyPartitionAssignor,
)
from pyclient.consumer.group.topic_partitions import by_topic
from pyclient.types import TopicPartition
from tests.interop.apache_kafka import jars

pytestmark = pytest.mark.usefixtures("kafka_jars")

GROUPS = 2_000
SEED = 20_429
ORACLE = Path(__file__).with_name("AssignorOracle.java")

Decided = dict[str, list[TopicPartition]]


@dataclass
class Group:
    """Members, what they read and what they own."""

    counts: dict[str, int]
    topics: dict[str, list[str]]
    owned: Decided

    @property
    def is_uniform(self) -> bool:
        """Whether all read the same."""
        return len({tuple(topics) for topics in self.topics.values()}) == 1

    def line(self, assignor: str) -> str:
        """The group in the oracle's format."""
        counts = ",".join(f"{topic}={count}" for topic, count in self.counts.items())
        members = [
            f"{name};{','.join(topics)};"
            f"{','.join(f'{topic}:{number}' for topic, number in self.owned[name])};3"
            for name, topics in self.topics.items()
        ]
        return " ".join((assignor, counts, *members))

    def decide(self, assignor: AbstractPartitionAssignor) -> Decided:
        """What our assignor says."""
        cluster = {topic: [frozenset[str]()] * count for topic, count in self.counts.items()}
        decided = assignor.assign(cluster, {name: self._member(name) for name in self.topics})
        return {name: one.topic_partitions() for name, one in decided.items()}

    def _member(self, name: str) -> MemberSubscription:
        owned = by_topic(self.owned[name])
        sticky = StickyPartitionAssignor()
        sticky.on_assignment(Assignment(owned), 3)
        topics = self.topics[name]
        user_data = sticky.subscription_user_data(frozenset(topics))
        return MemberSubscription(
            tuple(topics), owned_partitions=owned, generation_id=3, user_data=user_data
        )

    def kept(self, decided: Decided) -> int:
        """How many partitions stay where they are."""
        return sum(len(set(mine) & set(self.owned[name])) for name, mine in decided.items())


def new_group(chance: random.Random) -> Group:
    names = [f"m{number}" for number in range(chance.randint(1, 8))]
    every = [f"t{number}" for number in range(chance.randint(1, 6))]
    uniform = chance.random() < 0.3
    topics = {
        name: every if uniform else sorted(chance.sample(every, chance.randint(1, len(every))))
        for name in names
    }
    counts = {
        topic: chance.randint(0, 9)
        for topic in every
        if any(topic in read for read in topics.values())
    }
    owned: Decided = {name: [] for name in names}
    for topic, count in counts.items():
        before = [name for name in names if topic in topics[name] and chance.random() < 0.8]
        for number in range(count):
            if before and chance.random() < 0.85:
                owned[chance.choice(before)].append(TopicPartition(topic, number))
    return Group(counts, topics, owned)


def by_java(groups: list[Group], assignor: str) -> list[Decided]:
    done = subprocess.run(
        ["java", "-Xmx512m", "-cp", f"{jars()}/*", str(ORACLE)],
        input="".join(f"{group.line(assignor)}\n" for group in groups),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return [
        {
            name: [
                TopicPartition(topic, int(number))
                for topic, number in (one.split(":") for one in mine.split(",") if one)
            ]
            for name, mine in (member.split(";") for member in line.split(" "))
        }
        for line in done.stdout.splitlines()
    ]


def imbalance(decided: Decided) -> int:
    """Java's score: the differences of all pairs of members."""
    return sum(abs(len(one) - len(other)) for one, other in combinations(decided.values(), 2))


@pytest.mark.parametrize("ours", [StickyPartitionAssignor(), CooperativeStickyAssignor()])
def test_groups_are_as_balanced_and_as_sticky_as_with_java(ours: AbstractPartitionAssignor) -> None:
    chance = random.Random(SEED)
    groups = [new_group(chance) for _ in range(GROUPS)]
    better = worse = traded = 0
    for group, theirs in zip(groups, by_java(groups, ours.name), strict=True):
        decided = group.decide(ours)
        kept = group.kept(decided) - group.kept(theirs)
        # Under the cooperative protocol balance comes with the second rebalance.
        balance = imbalance(theirs) - imbalance(decided) if ours.name == "sticky" else 0
        if group.is_uniform:
            assert kept >= 0, group
            assert balance == 0, group
        else:
            better += max(kept, balance) > 0 and min(kept, balance) >= 0
            worse += min(kept, balance) < 0 and max(kept, balance) <= 0
            traded += min(kept, balance) < 0 < max(kept, balance)
    assert better > 20 * worse
    assert traded < GROUPS // 50
