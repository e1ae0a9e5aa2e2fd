"""Offsets in the JVM connector's JSON shape: `{"topic": {"0": 15, "1": -2}}`."""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from pyclient import TopicPartition

PartitionOffsets: TypeAlias = dict[TopicPartition, int]

LATEST: Final = -1
EARLIEST: Final = -2


def parse_offsets(text: str, option: str) -> PartitionOffsets:
    """Read offsets that a user gave as JSON.

    Raises:
        ValueError: it is not JSON of that shape, or an offset is below -2.
    """
    example = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
    try:
        offsets = from_json(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        raise ValueError(f"Option '{option}': expected e.g. {example}, got {text}") from None
    for partition, offset in offsets.items():
        if offset < EARLIEST:
            raise ValueError(
                f"Option '{option}': offset {offset} of {partition.topic}-{partition.partition}; "
                "-1 means latest, -2 earliest, nothing is below"
            )
    return offsets


def parse_partitions(text: str, option: str) -> list[TopicPartition]:
    """Read partitions that a user gave as JSON: `{"topicA":[0,1],"topicB":[2]}`."""
    try:
        named = json.loads(text)
        return [TopicPartition(str(t), int(p)) for t, ps in named.items() for p in ps]
    except (ValueError, TypeError, AttributeError):
        example = '{"topicA":[0,1],"topicB":[2]}'
        raise ValueError(f"Option '{option}': expected e.g. {example}, got {text}") from None


def from_json(nested: Mapping[str, Mapping[str, Any]]) -> PartitionOffsets:
    """Nested as in the checkpoint -> flat."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in nested.items()
        for partition, offset in partitions.items()
    }


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Flat -> nested as in the checkpoint, sorted: equal offsets give equal JSON."""
    nested: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        nested.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return nested
