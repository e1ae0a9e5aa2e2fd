"""A seed is all that it takes to see a history again, to the byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.admin_history import admin_history
from tests.simulation.producer_history import producer_history

pytestmark = pytest.mark.simulation

ROOT = Path(__file__).parents[2]
HISTORIES = {"admin": admin_history, "producer": producer_history}
PROGRAM = """
import logging, sys
logging.disable()
from tests.simulation.{kind}_history import {kind}_history
sys.stdout.write({kind}_history({seed}).trace.text())
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", HISTORIES)
def test_a_history_is_the_same_in_another_process(kind: str, seed: int) -> None:
    here = HISTORIES[kind](seed).trace.text()
    for hash_seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(kind=kind, seed=seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert there.splitlines() == here.splitlines()
    assert len(here.splitlines()) > 100


@pytest.mark.parametrize("kind", HISTORIES)
def test_another_seed_is_another_history(kind: str) -> None:
    assert HISTORIES[kind](1).trace.digest() != HISTORIES[kind](2).trace.digest()
