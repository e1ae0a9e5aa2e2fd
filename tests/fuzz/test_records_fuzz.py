"""Mutated batches: both twins read the same, or find the same damage."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import sanitized
from tests.fuzz.mutator import SEED, SOAK_INPUTS, input_count
from tests.fuzz.records import fuzz


@pytest.mark.fuzz
@pytest.mark.timeout(0)  # as long as FUZZ_INPUTS asks for
@pytest.mark.usefixtures("twin_in_use")
def test_mutated_batches_are_read_alike_by_both_twins_or_are_corrupt() -> None:
    count = input_count(50_000)
    done, whole = fuzz(count)
    assert done == count
    # Some of each, or the mutations are too mild or too wild to show anything.
    assert count / 50 < whole < count * 49 / 50, f"{whole} of {count} inputs could be read"


@pytest.mark.soak
@pytest.mark.usefixtures("twin_in_use")
def test_soak_fuzz_of_batches(soak_is_over: Callable[[], bool]) -> None:
    done, whole = fuzz(input_count(SOAK_INPUTS), until=soak_is_over)
    print(f"\nFUZZ_SEED={SEED}: {done} mutated batches, {whole} of them readable")


@pytest.mark.soak
def test_soak_fuzz_of_batches_under_address_sanitizer(
    tmp_path: Path, soak_is_over: Callable[[], bool]
) -> None:
    library = sanitized.build(tmp_path)
    inputs = 20_000
    for seed in range(SEED, SEED + SOAK_INPUTS // inputs):
        done = sanitized.run(library, "tests.fuzz.records", str(inputs), FUZZ_SEED=str(seed))
        assert done.returncode == 0, done.stderr
        print(f"\nFUZZ_SEED={seed}: {done.stdout.strip()} under AddressSanitizer", end="")
        if soak_is_over():
            break
