"""Explores histories in several processes.

One of them by hand, from seed 17 on, every second seed, 100 of them, at most a minute:

    python -m tests.simulation.explorer producer 17 2 100 60
"""

import importlib
import logging
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from broker_stub.testing.simulation import Simulation, explore
from tests.simulation.budget import HISTORIES, SECONDS

ROOT = Path(__file__).parents[2]
PROCESSES = 2


class Explored(NamedTuple):
    """How far it went: every seed before `next_seed` was looked at."""

    histories: int
    next_seed: int


def explore_in_parallel(kind: str, first_seed: int, histories: int, seconds: float) -> Explored:
    """Share the seeds among processes.

    Raises:
        AssertionError: a history failed; its text has the seed and the end of the trace.
    """
    each = -(-histories // PROCESSES)
    numbers = [(first_seed + start, PROCESSES, each, seconds) for start in range(PROCESSES)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", __spec__.name, kind, *map(str, one)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for one in numbers
    ]
    with ThreadPoolExecutor(PROCESSES) as pool:
        waits = [pool.submit(_count_of, process, kind) for process in processes]
        try:
            counts = [wait.result() for wait in as_completed(waits)]
        finally:
            for process in processes:
                process.kill()  # the others, once one has failed
    return Explored(sum(counts), first_seed + PROCESSES * min(counts))


def explore_slice(kind: str) -> None:
    """Explore CI's seeds of a kind."""
    explored = explore_in_parallel(kind, 0, HISTORIES[kind], SECONDS)
    print(f"\n{kind}: {explored.histories} of {HISTORIES[kind]} histories")


def _count_of(process: subprocess.Popen[str], kind: str) -> int:
    output, errors = process.communicate()
    assert process.returncode == 0, f"a history of the {kind} failed:\n{errors}"
    return int(output)


def history_of(kind: str) -> Callable[[int], Simulation]:
    """The function that runs a seed's history of a kind, and checks it."""
    module = importlib.import_module(f"tests.simulation.{kind}_history")
    history: Callable[[int], Simulation] = getattr(module, f"{kind}_history")
    return history


def main(kind: str, first_seed: str, step: str, histories: str, seconds: str) -> None:
    """Explore in one process, and print the number of histories."""
    logging.disable(logging.WARNING)  # expected ones, by the thousand
    end = int(first_seed) + int(step) * int(histories)
    seeds = range(int(first_seed), end, int(step))
    print(explore(history_of(kind), seeds, float(seconds)).histories)


if __name__ == "__main__":
    main(*sys.argv[1:])
