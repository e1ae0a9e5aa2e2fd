"""Offsets that a program stores to be committed later (`enable.auto.offset.store=false`)."""

from collections.abc import Collection, Mapping

from pyclient.clock import Clock
from pyclient.types import OffsetAndMetadata, TopicPartition


class StoredOffsets:
    """The latest offset that was stored of each partition, and when to commit them."""

    def __init__(self, clock: Clock, interval_ms: float | None) -> None:
        """Commit every `interval_ms`; None leaves it to the program."""
        self._clock = clock
        self._interval_ms = interval_ms
        self._due_ms = clock.monotonic_ms() + (interval_ms or 0)
        self._offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self._is_changed = False

    @property
    def commits_by_itself(self) -> bool:
        """Whether stored offsets are committed without the program's doing."""
        return self._interval_ms is not None

    def store(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Note offsets to be committed."""
        self._offsets.update(offsets)
        self._is_changed = True

    def all(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What is stored."""
        return dict(self._offsets)

    def of(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is stored of these partitions."""
        return {one: self._offsets[one] for one in partitions if one in self._offsets}

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions are gone."""
        for partition in partitions:
            self._offsets.pop(partition, None)

    def due(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What should be committed now, if it is time."""
        if self._interval_ms is None or not self._is_changed:
            return {}
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._due_ms:
            return {}
        self._due_ms = now_ms + self._interval_ms
        self._is_changed = False
        return dict(self._offsets)
