"""Mutated batches: both twins read the same, or find the same damage."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import sanitized
from tests.fuzz.mutator import SEED, SOAK_INPUTS, check_share, input_count
from tests.fuzz.records import fuzz


@pytest.mark.fuzz
@pytest.mark.timeout(0)  # as long as FUZZ_INPUTS asks for
@pytest.mark.usefixtures("twin_in_use")
def test_mutated_batches_are_read_alike_by_both_twins_or_are_corrupt() -> None:
    count = input_count(50_000)
    done, whole = fuzz(count)
    assert done == count
    check_share(whole, count)


@pytest.mark.soak
@pytest.mark.usefixtures("twin_in_use")
def test_soak_fuzz_of_batches(soak_is_over: Callable[[], bool]) -> None:
    done, whole = fuzz(input_count(SOAK_INPUTS), until=soak_is_over)
    print(f"\nFUZZ_SEED={SEED}: {done} mutated batches, {whole} of them readable")


@pytest.mark.soak
def test_soak_fuzz_of_batches_under_address_sanitizer(
    tmp_path: Path, soak_is_over: Callable[[], bool]
) -> None:
    sanitized.soak("tests.fuzz.records", tmp_path, 20_000, soak_is_over)
