"""A seed is all that it takes to see a history again, to the byte."""

import os
import subprocess
import sys
from functools import cache

import pytest

from tests.simulation.budget import KINDS
from tests.simulation.explorer import ROOT, history_of

pytestmark = pytest.mark.simulation

PROGRAM = """
import logging, sys
from tests.simulation.explorer import history_of
logging.disable()
sys.stdout.write(history_of({kind!r})({seed}).trace.text())
"""


SLOW_KINDS = ("transactions", "truncation")
REPLAYED = [
    (kind, seed) for kind in KINDS for seed in (1, 2) if seed == 2 or kind not in SLOW_KINDS
]


@cache
def trace_of(kind: str, seed: int) -> str:
    return history_of(kind)(seed).trace.text()


@pytest.mark.parametrize(("kind", "seed"), REPLAYED)
def test_a_history_is_the_same_in_another_process_on_either_twin(kind: str, seed: int) -> None:
    here = trace_of(kind, seed)
    for hash_seed, implementation in (("1", "native"), ("2", "python")):
        there = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(kind=kind, seed=seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYCLIENT_IMPL": implementation},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert there.splitlines() == here.splitlines()
    assert len(here.splitlines()) > 100


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_is_another_history(kind: str) -> None:
    assert trace_of(kind, 1) != trace_of(kind, 2)
