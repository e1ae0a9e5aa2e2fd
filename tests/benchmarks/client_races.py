"""Races of clients over one broker: a process for each, jobs in turn, a line for each bar."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.interop.apache_kafka import apache_kafka
from tests.support.server_process import ROOT, ServerProcess

HEADING = f"{'':43}  {'ours':>9} {'peer':>9} {'ratio':>7} {'bar':>6}   range"
_OURS = ("one", "one-partition", "pure")  # contenders that are our client with another setting


class Bar(NamedTuple):
    """A peer, what is compared, and how many times better ours has to be; 0 is no bar.

    `most` bounds ours itself.
    """

    peer: str
    figure: str
    least: float = 0
    most: float = 0


class ClientProcess:
    """A client's process, which does one job after another."""

    def __init__(self, client: str, module: str) -> None:
        environment = dict(os.environ)
        if client == "pure":
            environment["PYCLIENT_IMPL"] = "python"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, "ours" if client in _OURS else client],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, job: NamedTuple) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job._asdict()) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the client's process died"
        figures: dict[str, float] = json.loads(line)
        return figures

    def __enter__(self) -> ClientProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def lines_of(
    name: str, contender: str, bars: Iterable[Bar], rounds: list[dict[str, dict[str, float]]]
) -> Iterator[tuple[str, bool]]:
    """A line of the table for each bar, and whether it was reached.

    `rounds` has each client's figures. The ratio is the median of the rounds' ratios.
    """
    for bar in bars:
        pairs = [(one[contender][bar.figure], one[bar.peer][bar.figure]) for one in rounds]
        ratios = sorted(a / b if bar.figure == "rate" else b / a for a, b in pairs)
        ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(ratios)
        passed = ratio >= bar.least and (not bar.most or ours <= bar.most)
        least = f"{bar.least:4.1f}x" if bar.least else "     "
        yield (
            f"{name:16} {bar.peer:19} {bar.figure:7} {_short(ours):>9} {_short(theirs):>9}"
            f" {ratio:6.2f}x  {least}  {ratios[0]:5.2f} to {ratios[-1]:5.2f}"
            f"{'' if passed else '  MISSED'}",
            passed,
        )


def _short(figure: float) -> str:
    return f"{figure / 1000:.0f}k" if figure >= 10_000 else f"{figure:.3f}"


def print_lines(lines: Iterable[tuple[str, bool]]) -> bool:
    """Print lines as they come; whether every bar was reached."""
    passed = True
    for line, reached in lines:
        print(line, flush=True)
        passed &= reached
    return passed


@contextmanager
def running(broker: str) -> Iterator[str]:
    """A broker; its data stays in memory where that can be had, so that no disk is measured."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        if broker == "apache":
            with apache_kafka(Path(folder), {"log.segment.delete.delay.ms": "1000"}) as node:
                yield node.bootstrap_servers
        else:
            config = ("--config", "log.segment.delete.delay.ms=1000")
            with ServerProcess("--data-dir", folder, *config) as server:
                yield server.bootstrap_servers
