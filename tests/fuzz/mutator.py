"""A plain seeded mutator: the same seed, the same inputs, millions of them in a soak.

`FUZZ_INPUTS` says how many inputs a test draws, `FUZZ_SEED` where it starts.
"""

import os
import random
from collections.abc import Iterator, Sequence

SEED = int(os.environ.get("FUZZ_SEED", "1"))
SOAK_INPUTS = 10_000_000

# Lengths and counts that lie: nothing, null, one off, the largest of each width, long varints.
_NASTY = [
    *(b"\0", b"\x01", b"\x7f", b"\x80", b"\xff", b"\0\0", b"\xff\xff", b"\x7f\xff", b"\x80\0"),
    *(b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\x01"),
    *(b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x80\x80\x01"),
]


def input_count(default: int) -> int:
    """How many inputs to draw."""
    return int(os.environ.get("FUZZ_INPUTS", default))


def check_share(readable: int, count: int) -> None:
    """Some inputs must be readable and some not, or the mutations are too mild or too wild."""
    assert count / 50 < readable < count * 49 / 50, f"{readable} of {count} inputs could be read"


class Mutator:
    """Changes bytes, one to four times an input."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def inputs(self, corpus_size: int, count: int) -> Iterator[int]:
        """The indexes of the originals to change: every one in turn, in a new order each time."""
        order: list[int] = []
        for _ in range(count):
            if not order:
                order = self._random.sample(range(corpus_size), corpus_size)
            yield order.pop()

    def mutate(self, original: bytes, others: Sequence[bytes]) -> bytes:
        """`original`, changed; now and then with a piece of another one."""
        data = bytearray(original)
        for _ in range(self._random.choice((1, 1, 1, 2, 3, 4))):
            self._change(data, others)
        return bytes(data)

    def _change(self, data: bytearray, others: Sequence[bytes]) -> None:
        draw = self._random
        start = draw.randint(0, len(data))
        end = min(len(data), start + draw.choice((1, 1, 2, 4, 8, 64)))
        kind = draw.randrange(8)
        if kind == 0 and data:
            data[min(start, len(data) - 1)] ^= 1 << draw.randrange(8)
        elif kind == 1 and data:
            data[min(start, len(data) - 1)] = draw.randrange(256)
        elif kind == 2:
            nasty = draw.choice(_NASTY)
            data[start : start + len(nasty)] = nasty
        elif kind == 3:
            data[start:start] = draw.choice(_NASTY)
        elif kind == 4:
            del data[start:end]
        elif kind == 5:
            data[start:start] = data[start:end]
        elif kind == 6:
            del data[start:]
        else:
            other = draw.choice(others)
            cut = draw.randint(0, len(other))
            data[start:end] = other[cut : cut + 32]
