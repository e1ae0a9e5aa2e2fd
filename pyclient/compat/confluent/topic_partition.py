"""confluent-kafka's `TopicPartition`: a partition with an offset, and how ours map to it."""

from __future__ import annotations

from functools import total_ordering
from typing import Final

from pyclient import types
from pyclient.compat.confluent.error import KafkaError

OFFSET_BEGINNING: Final = -2
OFFSET_END: Final = -1
OFFSET_STORED: Final = -1000
OFFSET_INVALID: Final = -1001

OFFSET_TAIL_BASE: Final = -2000
"""librdkafka's `OFFSET_TAIL(n)` is this minus n: n messages before the end."""


@total_ordering
class TopicPartition:
    """A partition, with an offset, a note or an error; equal to another by topic and partition."""

    __slots__ = ("error", "leader_epoch", "metadata", "offset", "partition", "topic")

    def __init__(
        self,
        topic: str,
        partition: int = -1,
        offset: int = OFFSET_INVALID,
        metadata: str | None = None,
        leader_epoch: int | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.metadata = metadata
        self.leader_epoch = leader_epoch
        self.error: KafkaError | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicPartition):
            return NotImplemented
        return (self.topic, self.partition) == (other.topic, other.partition)

    def __lt__(self, other: TopicPartition) -> bool:
        return (self.topic, self.partition) < (other.topic, other.partition)

    def __hash__(self) -> int:
        return hash((self.topic, self.partition))

    def __repr__(self) -> str:
        return (
            f"TopicPartition{{topic={self.topic},partition={self.partition},"
            f"offset={_offset_text(self.offset)},leader_epoch={self.leader_epoch},"
            f"error={self.error}}}"
        )


_OFFSET_NAMES = {
    OFFSET_BEGINNING: "BEGINNING",
    OFFSET_END: "END",
    OFFSET_STORED: "STORED",
    OFFSET_INVALID: "INVALID",
}


def _offset_text(offset: int) -> str:
    name = _OFFSET_NAMES.get(offset)
    return str(offset) if name is None else f"{name}({offset})"


def ours(partition: TopicPartition) -> types.TopicPartition:
    """This package's tuple for a partition.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(partition, TopicPartition):
        raise TypeError(f"expected a TopicPartition, not {type(partition).__name__}")
    return types.TopicPartition(partition.topic, partition.partition)


def theirs(
    partition: types.TopicPartition,
    offset: int = OFFSET_INVALID,
    metadata: str | None = None,
    error: KafkaError | None = None,
) -> TopicPartition:
    """confluent-kafka's object for a partition."""
    made = TopicPartition(partition.topic, partition.partition, offset, metadata)
    made.error = error
    return made
