"""Commits that a broker took by the topic's name. The I/O thread only.

Before Kafka 4.1, brokers take commits by name alone. One that is made after its topic was deleted
and recreated, and before this consumer knows, becomes a committed offset of the new topic. So the
consumer remembers under which id it has consumed what it committed, to recognize such an offset.
"""

from typing import Final, NamedTuple

from pyclient.protocol.primitives import ZERO_UUID
from pyclient.types import TopicPartition

_PARTITIONS_MAX: Final = 10_000


class _NamedCommit(NamedTuple):
    topic_id: bytes
    offset: int


class NamedCommits:
    """The last commit by name of each partition; of the latest partitions if there are many."""

    def __init__(self) -> None:
        self._last: dict[TopicPartition, _NamedCommit] = {}

    def add(self, partition: TopicPartition, topic_id: bytes, offset: int) -> None:
        """A commit was accepted."""
        self._last.pop(partition, None)
        if topic_id == ZERO_UUID:
            return
        if len(self._last) >= _PARTITIONS_MAX:
            del self._last[next(iter(self._last))]
        self._last[partition] = _NamedCommit(topic_id, offset)

    def is_of_another_topic(self, partition: TopicPartition, topic_id: bytes, offset: int) -> bool:
        """Whether a committed offset is one that this consumer committed for another topic id."""
        last = self._last.get(partition)
        if last is None or topic_id == ZERO_UUID:
            return False
        return last.topic_id != topic_id and last.offset == offset
