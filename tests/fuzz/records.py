"""Mutated batches through every reader of both twins: `python -m tests.fuzz.records COUNT`.

A reader either reads or raises `CorruptRecordError`, and both twins do the same: the same records,
or damage found at the same place. A module of its own, so that a run under AddressSanitizer needs
nothing but an interpreter.
"""

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from pyclient import _twin
from pyclient.errors import CorruptRecordError
from pyclient.records.batch import RecordBatch, iter_batches
from pyclient.records.compression import Codec
from pyclient.records.control import control_record_type
from tests.fuzz.mutator import SEED, Mutator
from tests.golden.loader import golden_lines
from tests.support.batches import build_batch, numbered_records
from tests.support.twins import names_of, use

MAX_EXPANDED = 4 << 20
GROWTH_KIB_MAX = 64 * 1024
LARGEST = 3000  # bytes of an original: small ones make many inputs a second


def corpus() -> list[bytes]:
    """Batches of every format and codec, alone and in a row, a bomb of each codec among them."""
    golden = [
        bytes.fromhex(line["hex"])
        for name in ("batch.jsonl.gz", "control.jsonl.gz")
        for line in golden_lines(name)
        if len(line["hex"]) <= 2 * LARGEST
    ]
    built = [
        build_batch(numbered_records(count), codec=codec) for codec in Codec for count in (1, 9)
    ]
    bombs = [
        build_batch([(5, None, bytes(8 * MAX_EXPANDED), [])], buffer=9 * MAX_EXPANDED, codec=codec)
        for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD)
    ]
    plain = [build_batch(numbered_records(count)) for count in range(1, 12)]
    return [
        *golden,
        *built,
        *plain,
        b"".join(plain[:3]),
        *[bomb for bomb in bombs if len(bomb) < 1 << 18],
    ]


def read(data: bytes) -> Any:
    """All that readers make of the bytes, or where they found them corrupt."""
    outcome: list[Any] = []
    try:
        for batch in iter_batches(data):
            outcome.append(batch.crc_is_valid())
            records = batch.decode("topic", 1, max_expanded=MAX_EXPANDED)
            outcome.append(records)
            if isinstance(batch, RecordBatch):
                outcome.append(columns(batch))
                if batch.is_control:
                    outcome.append(control_record_type(batch))
    except CorruptRecordError as error:
        outcome.append(("corrupt", error.base_offset, error.position))
    return outcome


def columns(batch: RecordBatch) -> dict[str, bytes | None]:
    """The batch's Arrow buffers."""
    buffers = _twin.ColumnBuffers(headers=True)
    buffers.add(
        batch.records(MAX_EXPANDED),
        batch.record_count,
        batch.base_offset,
        batch.base_timestamp,
        batch.max_timestamp if batch.timestamp_type else None,
    )
    return {
        name: None if buffer is None else bytes(buffer) for name, buffer in buffers.finish().items()
    }


def fuzz(
    count: int, *, seed: int = SEED, until: Callable[[], bool] = lambda: False
) -> tuple[int, int]:
    """Read mutated batches with both twins: how many inputs there were, and how many were whole.

    Raises:
        AssertionError: the twins differ, or memory grew beyond the limit.
    """
    originals = corpus()
    native, pure = names_of("native"), names_of("python")
    for original in originals:  # imports and caches, so that only inputs count below
        compare(original, native, pure)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mutator = Mutator(seed)
    done = whole = 0
    for index in mutator.inputs(len(originals), count):
        if done % 1000 == 0 and until():
            break
        mutated = mutator.mutate(originals[index], originals)
        if done % 2:
            mutated = with_right_length(mutated)
        try:
            whole += compare(mutated, native, pure)
        except BaseException as error:
            error.add_note(f"FUZZ_SEED={seed}, input {done}: {mutated.hex()}")
            raise
        done += 1
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < GROWTH_KIB_MAX, f"memory grew by {grown} KiB"
    return done, whole


def with_right_length(data: bytes) -> bytes:
    """A batch that ends where the data does, for readers look no further at one that is cut off."""
    return data[:8] + (len(data) - 12).to_bytes(4, "big") + data[12:] if len(data) > 16 else data


def compare(data: bytes, native: dict[str, Any], pure: dict[str, Any]) -> bool:
    """Whether the input was read to its end, by both twins alike."""
    use(native)
    ours = read(data)
    use(pure)
    theirs = read(data)
    assert ours == theirs, "the twins differ"
    return not (ours and isinstance(ours[-1], tuple))


if __name__ == "__main__":
    started = time.monotonic()
    inputs, readable = fuzz(int(sys.argv[1]))
    seconds = time.monotonic() - started
    print(f"{inputs} inputs, {readable} of them readable, {seconds:.0f} s")
