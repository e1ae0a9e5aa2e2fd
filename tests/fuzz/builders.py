"""Random calls of both twins' batch builders: `python -m tests.fuzz.builders COUNT`.

A history appends records, adds buffers, seals and closes, in any order. Both
twins answer every call alike, give the same buffers back and write the same bytes, which hold the
records that were taken. A module of its own, so that a run under AddressSanitizer needs nothing
but an interpreter.
"""

import random
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pyclient import _twin
from pyclient.records.batch import RecordBatch
from pyclient.records.compression import Codec
from tests.fuzz.mutator import SEED
from tests.support.batches import Record, facts

CALLS_MAX = 120
CALLS = ("append",) * 12 + ("extend",) * 2 + ("ask", "seal", "release")
Outcome = list[Any]


def fuzz(
    count: int, *, seed: int = SEED, until: Callable[[], bool] = lambda: False
) -> tuple[int, int]:
    """Run histories on both twins: how many there were, and how many times buffers were added.

    Raises:
        AssertionError: the twins differ, or records were lost or changed.
    """
    native, pure = (_twin.load(name)["batch"] for name in ("native", "python"))
    done = extended = 0
    for number in range(seed, seed + count):
        if done % 100 == 0 and until():
            break
        try:
            ours, theirs = play(native, number), play(pure, number)
            assert ours == theirs, "the twins differ"
        except BaseException as error:
            error.add_note(f"FUZZ_SEED={number}")
            raise
        extended += ours.count(("extend", True))
        done += 1
    return done, extended


def play(twin: ModuleType, seed: int) -> Outcome:
    """One history of this seed: what every call returned, and the batch."""
    draw = random.Random(seed)
    codec = draw.choice((Codec.NONE, Codec.NONE, Codec.NONE, Codec.LZ4))
    limit = draw.choice((1 << 20, draw.randint(61, 3000)))
    builder = twin.BatchBuilder(_buffer(draw), codec=codec, limit=limit)
    taken: list[Record] = []
    outcome: Outcome = []
    for _ in range(draw.randint(1, CALLS_MAX)):
        _call(builder, draw, taken, outcome)
    if taken:
        builder.seal()
        data = b"".join(bytes(part) for part in builder.close(detach=draw.random() < 0.3))
        assert facts(RecordBatch(data).decode()) == taken
        outcome.append(data)
        outcome.append([len(buffer) for buffer in builder.release()])
    return outcome


def _call(builder: Any, draw: random.Random, taken: list[Record], outcome: Outcome) -> None:
    call = draw.choice(CALLS)
    if call == "append":
        record = _record(draw)
        assert builder.size_of(*record) > 0
        has_room = builder.has_room_for(*record)
        index = builder.try_append(*record)
        assert has_room == (index >= 0)
        if index >= 0:
            taken.append(record)
        outcome.append(index)
    elif call == "extend":
        lent = [_buffer(draw) for _ in range(draw.randint(1, 3))]
        outcome.append(("extend", builder.extend(lent)))
        outcome.append(len(lent))
    elif call == "ask":
        outcome.append((builder.raw_size, builder.record_count, builder.is_sealed))
    elif call == "seal" and draw.random() < 0.1:
        builder.seal()
    elif call == "release":
        outcome.append([len(buffer) for buffer in builder.release_unused()])


def _buffer(draw: random.Random) -> bytearray:
    return bytearray(draw.choice((61, 64, draw.randint(61, 400), draw.randint(61, 5000), 16384)))


def _record(draw: random.Random) -> Record:
    size = draw.choice((0, draw.randint(0, 20), draw.randint(0, 300), draw.randint(0, 5000)))
    key = None if draw.random() < 0.5 else draw.randbytes(draw.randint(0, 40))
    value = None if draw.random() < 0.1 else draw.randbytes(size)
    headers = [("name", draw.randbytes(3)), ("none", None)] if draw.random() < 0.2 else []
    return 1_700_000_000_000 + draw.randint(-5000, 5000), key, value, headers


if __name__ == "__main__":
    started = time.monotonic()
    histories, times = fuzz(int(sys.argv[1]))
    seconds = time.monotonic() - started
    print(f"{histories} histories, buffers added {times} times, {seconds:.0f} s")
