"""Random calls of the batch builder: both twins answer alike and write the same batch."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import sanitized
from tests.fuzz.builders import fuzz
from tests.fuzz.mutator import input_count


@pytest.mark.fuzz
@pytest.mark.timeout(0)  # as long as FUZZ_INPUTS asks for
def test_builders_of_both_twins_answer_random_calls_alike() -> None:
    count = input_count(2000)
    done, extended = fuzz(count)
    assert done == count
    assert extended > count / 3


@pytest.mark.soak
def test_soak_fuzz_of_builders_under_address_sanitizer(
    tmp_path: Path, soak_is_over: Callable[[], bool]
) -> None:
    sanitized.soak("tests.fuzz.builders", tmp_path, 5_000, soak_is_over)
