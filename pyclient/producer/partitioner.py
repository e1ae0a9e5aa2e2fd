"""Which partition a record goes to: custom partitioners, and the hash of a key.

A record goes to its explicit partition; else to the one that a custom partitioner returns; else by
the murmur2 hash of its key, the same as in Java; else, without a key, where `sticky_partitioner`
says. Custom partitioners run on the thread that sends.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from pyclient import _twin
from pyclient.cluster import ClusterMetadata
from pyclient.entropy import Entropy

CustomPartitioner: TypeAlias = Callable[
    [str, Any, "bytes | None", Any, "bytes | None", ClusterMetadata], int
]


def partition_for_key(key: bytes | bytearray | memoryview, partition_count: int) -> int:
    """The partition of a key, over all partitions, those without a leader included."""
    return _twin.partition_for_key(key, partition_count)


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
        available = cluster.available_partitions_for_topic(topic)
        return self._entropy.choice(sorted(available) if available else partitions)


class StickyPartitioner(DefaultPartitioner):
    """kafka-python's name for what is the default here: its rules for keys, else sticky.

    The producer itself moves on after `batch.size` bytes (KIP-794), so this class cannot be
    derived from: its methods would not be called.
    """

    def __init_subclass__(cls) -> None:
        raise TypeError(
            "StickyPartitioner cannot be derived from: the producer does what it stands for."
            " Derive from Partitioner or DefaultPartitioner"
        )


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
        """The partition for the next record."""
        available = cluster.available_partitions_for_topic(topic)
        choices = sorted(available) if available else _partitions(topic, cluster)
        return choices[next(self._counter) % len(choices)]


def custom_partitioner(configured: Any) -> CustomPartitioner | None:
    """The function of a configured partitioner; None for the default rules.

    Either form of kafka-python's: an object with `partition()` (3.x), or a callable
    `(serialized_key, all_partitions, available_partitions)` (2.x).
    """
    if configured is None or isinstance(configured, StickyPartitioner):
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
        chosen: int = configured(serialized_key, _partitions(topic, cluster), sorted(available))
        return chosen

    return partition


def _partitions(topic: str, cluster: ClusterMetadata) -> list[int]:
    partitions = cluster.partitions_for_topic(topic)
    if not partitions:
        raise ValueError(f"topic {topic!r} is not in the metadata")
    return sorted(partitions)
