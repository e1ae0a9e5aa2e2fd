"""Mutated byte streams: the native exchange finds the frames that the Python reader finds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import sanitized
from tests.fuzz.mutator import input_count
from tests.fuzz.streams import fuzz


@pytest.mark.fuzz
@pytest.mark.timeout(0)  # as long as FUZZ_INPUTS asks for
def test_mutated_streams_are_cut_into_the_same_frames() -> None:
    count = input_count(300)
    assert fuzz(count) == count


@pytest.mark.soak
def test_soak_fuzz_of_streams_under_address_sanitizer(
    tmp_path: Path, soak_is_over: Callable[[], bool]
) -> None:
    sanitized.soak("tests.fuzz.streams", tmp_path, 2_000, soak_is_over)
