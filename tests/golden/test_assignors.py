"""The assignors against what Apache Kafka's decided, over four rebalances.

Range and round-robin have to decide the same. The sticky ones have to be as balanced, and to
leave at least as many partitions where they were.
"""

import struct
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest

from pyclient.consumer.group.assignors import (
    AbstractPartitionAssignor,
    Assignment,
    CooperativeStickyAssignor,
    MemberSubscription,
    PartitionRacks,
    RangePartitionAssignor,
    RoundRobinPartitionAssignor,
    StickyPartitionAssignor,
)
from pyclient.consumer.group.topic_partitions import encode_partitions
from tests.golden.loader import golden_lines

LINES = golden_lines("assignors.jsonl.gz")
ASSIGNORS: list[AbstractPartitionAssignor] = [
    RangePartitionAssignor(),
    RoundRobinPartitionAssignor(),
]
STICKY: list[AbstractPartitionAssignor] = [StickyPartitionAssignor(), CooperativeStickyAssignor()]


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: assignor.name)
def test_every_round_is_decided_as_in_kafka(assignor: AbstractPartitionAssignor) -> None:
    for each in rounds(assignor):
        decided = assignor.assign(topics(each), members(each))
        assert by_topic(decided) == each["assignment"], each


@pytest.mark.parametrize("assignor", STICKY, ids=lambda assignor: assignor.name)
def test_every_round_is_as_balanced_and_as_sticky_as_in_kafka(
    assignor: AbstractPartitionAssignor,
) -> None:
    compared = 0
    for each in rounds(assignor):
        if is_read_by_non_subscribers(each):
            continue
        decided = by_topic(assignor.assign(topics(each), members(each)))
        assert imbalance(decided) <= imbalance(each["assignment"]), each
        assert kept(decided, each) >= kept(each["assignment"], each), each
        assert total(decided) >= total(each["assignment"]), each
        compared += 1
    assert compared > 100


@pytest.mark.parametrize("assignor", STICKY, ids=lambda assignor: assignor.name)
def test_every_partition_goes_to_a_subscriber(assignor: AbstractPartitionAssignor) -> None:
    for each in rounds(assignor):
        decided = by_topic(assignor.assign(topics(each), members(each)))
        for name, partitions in decided.items():
            assert partitions.keys() <= set(each["members"][name]["topics"]), each


def test_some_rounds_have_racks_and_some_static_members() -> None:
    found = rounds(RangePartitionAssignor())
    assert any(each.get("partition_racks") for each in found)
    assert any("instance_id" in one for each in found for one in each["members"].values())


def rounds(assignor: AbstractPartitionAssignor) -> list[dict[str, Any]]:
    found = [each for line in LINES if line["assignor"] == assignor.name for each in line["rounds"]]
    assert found
    return found


def is_read_by_non_subscribers(each: dict[str, Any]) -> bool:
    """Whether a member was assigned a topic that it does not read.

    Java's sticky assignors do that if the first member that they look at reads nothing: they take
    the group for one whose members all read the same.
    """
    return any(
        topic not in each["members"][name]["topics"]
        for partitions in (
            each["assignment"],
            {name: member["owned"] for name, member in each["members"].items()},
        )
        for name, found in partitions.items()
        for topic in found
        if not each["members"][name]["topics"]
    )


def imbalance(decided: Mapping[str, Mapping[str, list[int]]]) -> int:
    """Java's score: the differences of all pairs of members."""
    sizes = [sum(map(len, partitions.values())) for partitions in decided.values()]
    return sum(abs(one - other) for one, other in combinations(sizes, 2))


def kept(decided: Mapping[str, Mapping[str, list[int]]], each: dict[str, Any]) -> int:
    return sum(
        len(set(numbers) & set(each["members"][name]["owned"].get(topic, ())))
        for name, partitions in decided.items()
        for topic, numbers in partitions.items()
    )


def total(decided: Mapping[str, Mapping[str, list[int]]]) -> int:
    return sum(len(numbers) for partitions in decided.values() for numbers in partitions.values())


def topics(each: dict[str, Any]) -> dict[str, list[PartitionRacks]]:
    return {
        topic: [racks_of(each, number) for number in range(count)]
        for topic, count in each["partitions"].items()
    }


def racks_of(each: dict[str, Any], partition: int) -> PartitionRacks:
    racks = each.get("partition_racks")
    if racks is None:
        return frozenset()
    assert racks == {"rule": "partition p is on racks r(p%3) and r((p+1)%3)"}
    return frozenset({f"r{partition % 3}", f"r{(partition + 1) % 3}"})


def members(each: dict[str, Any]) -> dict[str, MemberSubscription]:
    return {
        name: MemberSubscription(
            topics=tuple(member["topics"]),
            group_instance_id=member.get("instance_id"),
            rack_id=member.get("rack"),
            owned_partitions=member["owned"],
            generation_id=member["owned_generation"],
            user_data=encode_partitions(member["owned"])  # what Java's sticky assignor reads
            + struct.pack(">i", member["owned_generation"]),
        )
        for name, member in each["members"].items()
    }


def by_topic(decided: Mapping[str, Assignment]) -> dict[str, dict[str, list[int]]]:
    return {
        member: {topic: list(numbers) for topic, numbers in assignment.partitions.items()}
        for member, assignment in decided.items()
    }
