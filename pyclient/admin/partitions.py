"""Partitions: more of them for a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pyclient.admin.requests import AdminRequests
from pyclient.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


class NewPartitions:
    """How many partitions a topic is to have in all, and where the new ones go."""

    def __init__(self, total_count: int, new_assignments: list[list[int]] | None = None) -> None:
        """Describe the growth.

        Args:
            total_count: the number of partitions afterwards.
            new_assignments: broker ids for each new partition; by default the broker chooses.
        """
        self.total_count = total_count
        self.new_assignments = new_assignments


Growth: TypeAlias = Mapping[str, int | Mapping[str, Any] | NewPartitions]


def create_partitions(
    requests: AdminRequests,
    topic_partitions: Growth,
    timeout_ms: float | None,
    validate_only: bool,
) -> dict[str, CreatePartitionsTopicResult]:
    """Have topics grow; the outcome by name."""
    if not topic_partitions:
        raise ValueError("there is no topic to give partitions to")
    deadline = requests.deadline(timeout_ms)
    return requests.settle(
        {name: _to_message(name, wanted) for name, wanted in topic_partitions.items()},
        lambda pending: CreatePartitionsRequest(
            topics=pending,
            timeout_ms=int(deadline.remaining_ms()),
            validate_only=validate_only,
        ),
        lambda response: ((one.name, one) for one in response.results),
        deadline,
    )


def _to_message(
    name: str, wanted: int | Mapping[str, Any] | NewPartitions
) -> CreatePartitionsTopic:
    if isinstance(wanted, int):
        wanted = NewPartitions(wanted)
    elif isinstance(wanted, Mapping):
        wanted = NewPartitions(wanted["count"], wanted.get("assignments"))
    assignments = None
    if wanted.new_assignments is not None:
        assignments = [
            CreatePartitionsAssignment(broker_ids=list(brokers))
            for brokers in wanted.new_assignments
        ]
    return CreatePartitionsTopic(name=name, count=wanted.total_count, assignments=assignments)
