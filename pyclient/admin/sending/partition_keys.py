"""Partitions as the things that a call is about: requests and responses list them by topic."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pyclient.types import TopicPartition

Topic = TypeVar("Topic")
Value = TypeVar("Value")


def by_topic(items: Iterable[tuple[TopicPartition, Value]]) -> dict[str, list[Value]]:
    """What a request says of each partition, by topic."""
    grouped: dict[str, list[Value]] = {}
    for key, value in items:
        grouped.setdefault(key.topic, []).append(value)
    return grouped


def topics_of(
    kind: Callable[..., Topic], items: Iterable[tuple[TopicPartition, object]]
) -> list[Topic]:
    """What a request says of each partition, in structs with a `name` and `partitions`."""
    return [kind(name=name, partitions=of) for name, of in by_topic(items).items()]


def results_by_partition(response: Any) -> Iterable[tuple[TopicPartition, Any]]:
    """What a response says of each partition, where it lists `topics` and their `partitions`."""
    return in_topics(response.topics)


def in_topics(topics: Iterable[Any]) -> Iterable[tuple[TopicPartition, Any]]:
    """The same, given the topics."""
    return (
        (TopicPartition(topic.name, one.partition_index), one)
        for topic in topics
        for one in topic.partitions
    )


def partition_name(partition: TopicPartition) -> str:
    """What errors call a partition."""
    return f"{partition.topic}-{partition.partition}"
