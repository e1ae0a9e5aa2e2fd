"""What records carry: values from a file or made up, and keys by a distribution.

All draws are seeded: two runs, and two clients, send the same.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final

from pyclient.entropy import Entropy
from pyclient.errors import KafkaConfigurationError

POOL: Final = 1_000
"""Distinct values that are made up; a run goes round them."""

_LETTERS: Final = bytes(ord("A") + byte % 26 for byte in range(256))


def generated_values(size: int, compressibility: float | None = None) -> list[bytes]:
    """Values of `size` bytes.

    Without `compressibility` they are random capital letters, as in Kafka's tool. With it, this
    share of each value (0 to 1) is one repeated byte, and the rest is random.

    Raises:
        KafkaConfigurationError: it is not between 0 and 1.
    """
    entropy = Entropy(seed=0)
    if compressibility is None:
        return [entropy.random_bytes(size).translate(_LETTERS) for _ in range(POOL)]
    if not 0 <= compressibility <= 1:
        raise KafkaConfigurationError(f"a compressibility is from 0 to 1, not {compressibility}")
    filler = bytes(round(size * compressibility))
    return [entropy.random_bytes(size - len(filler)) + filler for _ in range(POOL)]


def values_from_file(path: Path, delimiter: bytes = b"\n") -> list[bytes]:
    """The parts of a file, in their order.

    Raises:
        KafkaConfigurationError: it cannot be read, or is empty.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KafkaConfigurationError(
            f"cannot read the payload file {path}: {error.strerror}"
        ) from error
    values = data.removesuffix(delimiter).split(delimiter) if data else []
    if not values:
        raise KafkaConfigurationError(f"the payload file {path} is empty")
    return values


def uniform_keys(count: int) -> Iterator[bytes]:
    """Keys of `count` different ones, each equally often."""
    entropy = Entropy(seed=1)
    while True:
        yield b"key-%08d" % entropy.below(count)


def zipf_keys(count: int, exponent: float = 1.0) -> Iterator[bytes]:
    """Keys of `count` different ones; the n-th is drawn in proportion to 1 / n^`exponent`."""
    entropy = Entropy(seed=1)
    sums = list(accumulate(1 / rank**exponent for rank in range(1, count + 1)))
    while True:
        yield b"key-%08d" % min(bisect_left(sums, entropy.uniform(0, sums[-1])), count - 1)
