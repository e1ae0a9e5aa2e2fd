"""Offsets in the JVM connector's JSON shape: `{"topic": {"0": 15, "1": -2}}`.

A stream's offset in the checkpoint has further facts beside it: the topics' ids, and where the
query started. They are in the name of a key without partitions, `{"#pykafka {...}": {}}`, which
the JVM connector reads as a topic without partitions. So it can go on from our checkpoints, and
we from its.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pyclient import TopicPartition

PartitionOffsets: TypeAlias = dict[TopicPartition, int]

LATEST: Final = -1
EARLIEST: Final = -2

_FACTS: Final = "#pykafka "  # no topic has such a name


class SpecificOffsets(dict[TopicPartition, int]):
    """Offsets that the user named for each partition; -1 is the latest, -2 the earliest."""


class SpecificTimestamps(dict[TopicPartition, int]):
    """Times (ms since 1970) that the user named for each partition."""


@dataclass(frozen=True)
class GlobalTimestamp:
    """A time (ms since 1970) for all partitions."""

    timestamp: int


OffsetLimit: TypeAlias = str | SpecificOffsets | SpecificTimestamps | GlobalTimestamp
"""Where a query starts or ends; a string is `earliest` or `latest`."""


@dataclass(frozen=True)
class StreamOffset:
    """How far a stream has come, as kept in the checkpoint.

    Attributes:
        offsets: the next offset of each partition.
        topic_ids: by topic; a changed id means that the topic was deleted and created again.
        initial: where the query started, kept with its first batch only. Spark asks for the
            initial offsets again when the first batch is repeated, and `latest` may have moved.
    """

    offsets: PartitionOffsets
    topic_ids: dict[str, str] = field(default_factory=dict)
    initial: PartitionOffsets | None = None

    def to_json(self) -> dict[str, Any]:
        """The dict for Spark. Equal offsets give equal dicts, in the same order."""
        facts: dict[str, Any] = {}
        if self.topic_ids:
            facts["ids"] = dict(sorted(self.topic_ids.items()))
        if self.initial is not None:
            facts["initial"] = to_json(self.initial)
        nested: dict[str, Any] = to_json(self.offsets)
        if facts:
            nested[_FACTS + json.dumps(facts, separators=(",", ":"))] = {}
        return nested

    @classmethod
    def from_json(cls, nested: Mapping[str, Any]) -> "StreamOffset":
        """Read a dict of ours, or one of the JVM connector's."""
        facts: dict[str, Any] = {}
        offsets = {}
        for key, value in nested.items():
            if key.startswith(_FACTS):
                facts = json.loads(key.removeprefix(_FACTS))
            else:
                offsets[key] = value
        initial = facts.get("initial")
        return cls(
            from_json(offsets),
            facts.get("ids", {}),
            None if initial is None else from_json(initial),
        )


def parse_offsets(text: str, option: str) -> PartitionOffsets:
    """Read offsets that a user gave as JSON.

    Raises:
        ValueError: it is not JSON of that shape, or an offset is below -2.
    """
    example = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
    offsets = _parse(text, option, example)
    for partition, offset in offsets.items():
        if offset < EARLIEST:
            raise ValueError(
                f"Option '{option}': offset {offset} of {partition.topic}-{partition.partition}; "
                "-1 means latest, -2 earliest, nothing is below"
            )
    return offsets


def parse_timestamps(text: str, option: str) -> dict[TopicPartition, int]:
    """Read times that a user gave as JSON, of the same shape as offsets."""
    return _parse(text, option, '{"topicA": {"0": 123456789, "1": 123456789}}')


def _parse(text: str, option: str, example: str) -> dict[TopicPartition, int]:
    try:
        nested = json.loads(text)
        for partitions in nested.values():
            for number in partitions.values():
                if type(number) is not int:
                    raise TypeError(number)
        return from_json(nested)
    except (ValueError, TypeError, AttributeError):
        raise ValueError(f"Option '{option}': Expected e.g. {example}, got {text}") from None


def parse_partitions(text: str, option: str) -> list[TopicPartition]:
    """Read partitions that a user gave as JSON: `{"topicA":[0,1],"topicB":[2]}`."""
    try:
        named = json.loads(text)
        return [TopicPartition(str(t), int(p)) for t, ps in named.items() for p in ps]
    except (ValueError, TypeError, AttributeError):
        example = '{"topicA":[0,1],"topicB":[0,1]}'
        raise ValueError(f"Option '{option}': Expected e.g. {example}, got {text}") from None


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


def names(partitions: Any) -> str:
    """Partitions as error texts have them: `orders-0, orders-1`."""
    return ", ".join(f"{one.topic}-{one.partition}" for one in sorted(partitions)) or "none"
