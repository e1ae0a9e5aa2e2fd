"""Range and round-robin against what Apache Kafka's assignors decided, over four rebalances."""

from collections.abc import Mapping
from typing import Any

import pytest

from pyclient.consumer.group.assignors import (
    AbstractPartitionAssignor,
    Assignment,
    MemberSubscription,
    PartitionRacks,
    RangePartitionAssignor,
    RoundRobinPartitionAssignor,
)
from tests.golden.loader import golden_lines

LINES = golden_lines("assignors.jsonl.gz")
ASSIGNORS: list[AbstractPartitionAssignor] = [
    RangePartitionAssignor(),
    RoundRobinPartitionAssignor(),
]


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: assignor.name)
def test_every_round_is_decided_as_in_kafka(assignor: AbstractPartitionAssignor) -> None:
    rounds = [
        each for line in LINES if line["assignor"] == assignor.name for each in line["rounds"]
    ]
    assert rounds
    for each in rounds:
        decided = assignor.assign(topics(each), members(each))
        assert by_topic(decided) == each["assignment"], each


def test_some_rounds_have_racks_and_some_static_members() -> None:
    rounds = [each for line in LINES if line["assignor"] == "range" for each in line["rounds"]]
    assert any(each.get("partition_racks") for each in rounds)
    assert any("instance_id" in one for each in rounds for one in each["members"].values())


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
        )
        for name, member in each["members"].items()
    }


def by_topic(decided: Mapping[str, Assignment]) -> dict[str, dict[str, list[int]]]:
    return {
        member: {topic: list(numbers) for topic, numbers in assignment.partitions.items()}
        for member, assignment in decided.items()
    }
