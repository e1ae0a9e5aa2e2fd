"""Which partition a record goes to.

By its explicit partition; else by a custom partitioner; else by the murmur2 hash of its key, as
in Java to the bit; else, without a key, by KIP-794: stay on one partition until `batch.size`
bytes have gone to it, then move on, to partitions with long queues less often.

`StickyPartitioner` and `QueueSizes` belong to one topic of the accumulator, whose lock guards
them. The rest is stateless, or says otherwise.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from pyclient import _twin
from pyclient.entropy import Entropy
from pyclient.metadata import ClusterMetadata

CustomPartitioner: TypeAlias = Callable[
    [str, Any, "bytes | None", Any, "bytes | None", ClusterMetadata], int
]

_DRAWS: Final = 16


def partition_for_key(key: bytes | bytearray | memoryview, partition_count: int) -> int:
    """The partition of a key, over all partitions, those without a leader included."""
    return _twin.partition_for_key(key, partition_count)


class QueueSizes:
    """How many buffers of batches wait per partition of a topic, and the extremes.

    One buffer more or less costs the same however many partitions there are.
    """

    __slots__ = ("_partitions_of_size", "high", "low", "sizes")

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._partitions_of_size: dict[int, int] = {}
        self.low = 0
        self.high = 0

    def add_partitions(self, count: int) -> None:
        """The topic has so many more."""
        self.sizes.extend([0] * count)
        self._partitions_of_size[0] = self._partitions_of_size.get(0, 0) + count
        self.low = 0

    def grow(self, partition: int, count: int = 1) -> None:
        """So many more."""
        self._change(partition, count)

    def shrink(self, partition: int, count: int = 1) -> None:
        """So many less."""
        self._change(partition, -count)

    def _change(self, partition: int, difference: int) -> None:
        size = self.sizes[partition]
        new_size = self.sizes[partition] = size + difference
        of_size = self._partitions_of_size
        of_size[new_size] = of_size.get(new_size, 0) + 1
        if new_size > self.high:
            self.high = new_size
        elif new_size < self.low:
            self.low = new_size
        if of_size[size] > 1:
            of_size[size] -= 1
            return
        # The last one of this size: an extreme moves on, and meets it again at its new size.
        del of_size[size]
        while self.low not in of_size:
            self.low += 1
        while self.high not in of_size:
            self.high -= 1


class StickyPartitioner:
    """The partition of a topic's records without a key, by KIP-794."""

    __slots__ = ("_available", "_count", "_entropy", "_queue_sizes", "_stick_bytes", "partition")

    def __init__(
        self,
        entropy: Entropy,
        stick_bytes: int,
        queue_sizes: QueueSizes,
        available: Sequence[int],
    ) -> None:
        self._entropy = entropy
        self._stick_bytes = max(stick_bytes, 1)
        self._queue_sizes = queue_sizes
        self._available = available
        self._count = len(queue_sizes.sizes)
        self.partition = self._next()

    def update(self, available: Sequence[int], count: int) -> bool:
        """New metadata: the partitions that have a leader now, of so many; whether it moved.

        It does not stay where nothing can be sent to: at a partition without a leader, as long as
        another has one, or at one that is no more.
        """
        self._available = available
        self._count = count
        if self.partition in available or (not available and self.partition < count):
            return False
        self.partition = self._next()
        return True

    def switch_after(self, produced_bytes: int) -> bool:
        """Move on if enough bytes have gone to the partition; whether it moved.

        Asked between two batches only. Moving on inside one would leave it to be sent half full.
        """
        if produced_bytes < self._stick_bytes:
            return False
        self.partition = self._next()
        return True

    def _next(self) -> int:
        sizes = self._queue_sizes.sizes
        choices: Sequence[int] = self._available or range(self._count)
        if len(choices) == 1:
            return choices[0]
        low, high = self._queue_sizes.low, self._queue_sizes.high
        chosen = self._entropy.choice(choices)
        if low == high:
            return chosen
        # KIP-794's weights, `high + 1 - size`, without a table of all partitions: draw one and
        # keep it with a probability of its weight to the largest. The draws are bounded; the
        # shortest queue among them is good enough.
        for _ in range(_DRAWS):
            candidate = self._entropy.choice(choices)
            if self._entropy.below(high + 1 - low) <= high - sizes[candidate]:
                return candidate
            if sizes[candidate] < sizes[chosen]:
                chosen = candidate
        return chosen


class Partitioner(ABC):
    """What a custom partitioner implements: kafka-python 3's interface."""

    @abstractmethod
    def partition(
        self,
        topic: str,
        key: Any,
        serialized_key: bytes | None,
        value: Any,
        serialized_value: bytes | None,
        cluster: ClusterMetadata,
    ) -> int:
        """The partition of a record; called on the thread that sends it."""


class DefaultPartitioner(Partitioner):
    """kafka-python's default, to derive from: by the key's hash, at random without one."""

    def __init__(self) -> None:
        self._entropy = Entropy()

    def partition(
        self,
        topic: str,
        key: Any,  # noqa: ARG002
        serialized_key: bytes | None,
        value: Any,  # noqa: ARG002
        serialized_value: bytes | None,  # noqa: ARG002
        cluster: ClusterMetadata,
    ) -> int:
        """The partition of a record."""
        partitions = _partitions(topic, cluster)
        if serialized_key is not None:
            return partition_for_key(serialized_key, len(partitions))
        return self._entropy.choice(cluster.available_partitions_for_topic(topic) or partitions)


class RoundRobinPartitioner(Partitioner):
    """Every partition with a leader in turn, whatever the key. Any thread may use it."""

    def __init__(self) -> None:
        self._counter = itertools.count()

    def partition(
        self,
        topic: str,
        key: Any,  # noqa: ARG002
        serialized_key: bytes | None,  # noqa: ARG002
        value: Any,  # noqa: ARG002
        serialized_value: bytes | None,  # noqa: ARG002
        cluster: ClusterMetadata,
    ) -> int:
        """The next partition."""
        choices = cluster.available_partitions_for_topic(topic) or _partitions(topic, cluster)
        return choices[next(self._counter) % len(choices)]


def custom_partitioner(configured: Any) -> CustomPartitioner | None:
    """The function of a configured partitioner; None for the default rules.

    Either form of kafka-python's: an object with `partition()` (3.x), or a callable
    `(serialized_key, all_partitions, available_partitions)` (2.x).
    """
    if configured is None:
        return None
    method: CustomPartitioner | None = getattr(configured, "partition", None)
    if method is not None:
        return method

    def partition(
        topic: str,
        _key: Any,
        serialized_key: bytes | None,
        _value: Any,
        _serialized_value: bytes | None,
        cluster: ClusterMetadata,
    ) -> int:
        available = cluster.available_partitions_for_topic(topic) or ()
        chosen: int = configured(serialized_key, list(_partitions(topic, cluster)), list(available))
        return chosen

    return partition


def _partitions(topic: str, cluster: ClusterMetadata) -> tuple[int, ...]:
    partitions = cluster.partitions_for_topic(topic)
    if not partitions:
        raise ValueError(f"topic {topic!r} is not in the metadata")
    return partitions
