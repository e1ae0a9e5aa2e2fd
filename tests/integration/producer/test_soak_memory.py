"""`make soak-memory`: a steady load on a broker that stalls now and then; memory stays flat.

The stall is a real one: the broker's process is stopped, long enough for the producer's buffer to
fill, and goes on again.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker_load import create_topic, resident_bytes
from tests.support.server_process import ROOT, ServerProcess

pytestmark = pytest.mark.soak

BYTES_PER_SECOND = 24_000_000
BUFFER_MEMORY = 33_554_432
STALL_EVERY, STALL_SECONDS = 15, 3  # the buffer holds 1.4 seconds' worth
WARM_UP_SECONDS = 2 * STALL_EVERY  # by then the buffer was full once
SMALL_CONSTANT = 16_000_000
FLAT = 4_000_000

# So that ten minutes' worth need no room for 14 GB.
RETENTION = {
    "log.retention.bytes": 50_000_000,
    "log.segment.bytes": 25_000_000,
    "log.retention.check.interval.ms": 2_000,
    "log.segment.delete.delay.ms": 1_000,
}


class Load:
    """The producer's process, watched from outside."""

    def __init__(self, servers: str, options: dict[str, Any]) -> None:
        module = [sys.executable, "-m", "tests.support.memory_load"]
        self._process = subprocess.Popen(
            [*module, servers, "steady", str(BYTES_PER_SECOND), json.dumps(options)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.resident = 0

    def next_report(self) -> dict[str, Any]:
        """What it says of itself, about once a second; how large it is, as the system says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the producer's process died"
        self.resident = resident_bytes(self._process.pid)
        report: dict[str, Any] = json.loads(line)
        return report

    def end(self) -> dict[str, Any]:
        """Let it flush; the last report."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        while "last" not in (report := self.next_report()):
            pass
        assert self._process.wait(60) == 0
        return report

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@pytest.mark.parametrize("codec", [None, "lz4"])
def test_soak_memory_stays_flat_while_the_broker_stalls_now_and_then(
    tmp_path: Path, soak_is_over: Callable[[], bool], codec: str | None
) -> None:
    config = [f"--config={key}={value}" for key, value in RETENTION.items()]
    with ServerProcess("--data-dir", tmp_path, *config) as server:
        create_topic(server.bootstrap_servers, "steady", partitions=6)
        load = Load(server.bootstrap_servers, {"compression_type": codec})
        try:
            load.next_report()
            before = load.resident
            sizes = watch(server, load, soak_is_over)
            last = load.end()
        finally:
            load.kill()
    third = len(sizes) // 3
    early, late = (statistics.median(part) for part in (sizes[:third], sizes[-third:]))
    print(
        f"\n{codec}: {last['sent'] / 1e6:.1f} M records, {last['waited_s']:.0f} s of back-pressure,"
        f" resident {before / 1e6:.0f} MB at the start, {early / 1e6:.0f} in the first third,"
        f" {late / 1e6:.0f} in the last, {max(sizes) / 1e6:.0f} at most"
    )
    assert last["errors"] == 0
    assert last["held"] == 0, "memory did not come back to the pool"
    assert last["waited_s"] > 0, "the broker never stalled for long enough to show anything"
    assert max(sizes) <= before + BUFFER_MEMORY + SMALL_CONSTANT
    assert late <= early + FLAT, "memory grows"


def watch(server: ServerProcess, load: Load, is_over: Callable[[], bool]) -> list[int]:
    """Stop and continue the broker, second by second; the producer's sizes once it is warm."""
    sizes: list[int] = []
    seconds = 0
    while not is_over() or len(sizes) < 6:
        second = seconds % STALL_EVERY
        if second == STALL_EVERY - STALL_SECONDS:
            os.kill(server.pid, signal.SIGSTOP)
        elif second == 0:
            os.kill(server.pid, signal.SIGCONT)
        load.next_report()
        seconds += 1
        if seconds > WARM_UP_SECONDS:
            sizes.append(load.resident)
    os.kill(server.pid, signal.SIGCONT)
    return sizes
