"""The partition of records without a key (KIP-794).

Stay on one partition until `batch.size` bytes have gone to it, then choose the next: one with a
leader, and a partition with a long queue less often. Both classes belong to one topic of the
accumulator, whose lock guards them.
"""

from collections.abc import Sequence
from typing import Final

from pyclient.entropy import Entropy

_DRAWS: Final = 16


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
        """Add `count` empty partitions."""
        self.sizes.extend([0] * count)
        self._partitions_of_size[0] = self._partitions_of_size.get(0, 0) + count
        self.low = 0

    def grow(self, partition: int, count: int = 1) -> None:
        self._change(partition, count)

    def shrink(self, partition: int, count: int = 1) -> None:
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
        """Apply new metadata; returns whether the sticky partition changed.

        It changes if its partition has no leader while another one has, or no longer exists.

        Args:
            available: the partitions that have a leader.
            count: how many partitions the topic has.
        """
        self._available = available
        self._count = count
        if self.partition in available or (not available and self.partition < count):
            return False
        self.partition = self._next()
        return True

    def switch_after(self, produced_bytes: int) -> bool:
        """Choose the next partition if enough bytes have gone to this one; returns whether it did.

        Called between two batches only: otherwise a batch would be sent half full.
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
