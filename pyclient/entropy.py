"""Randomness, injected: the one module that draws random numbers.

Without a seed, nonces and ids come from the operating system, so that they cannot be guessed and
differ in a forked child; choices come from a generator, which costs a tenth. With a seed,
everything repeats, so that a simulation can be replayed.
"""

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

_UUID_BYTES = 16


class Entropy:
    """A source of random numbers. Thread-safe without a seed; for one thread with a seed."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)
        self._secure = random.SystemRandom() if seed is None else self._random

    def below(self, limit: int) -> int:
        """An integer from 0 to `limit` - 1, for limits below 2^53."""
        return int(self._random.random() * limit)

    def uniform(self, low: float, high: float) -> float:
        """A number between `low` and `high`."""
        return self._random.uniform(low, high)

    def choice(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[int(self._random.random() * len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """A new list of the items in random order."""
        return self._random.sample(items, len(items))

    def random_bytes(self, count: int) -> bytes:
        return self._secure.randbytes(count)

    def uuid(self) -> bytes:
        """A random topic id, by Kafka's rule.

        It is a version 4 UUID whose text does not start with a dash, which would look like an
        option on a command line. The reserved ids (0 and 1) are not of version 4.
        """
        while True:
            raw = bytearray(self._secure.randbytes(_UUID_BYTES))
            raw[6] = raw[6] & 0x0F | 0x40  # version 4
            raw[8] = raw[8] & 0x3F | 0x80  # the variant of RFC 4122
            if raw[0] >> 2 != 0b111110:  # the six bits that base64url writes as a dash
                return bytes(raw)
