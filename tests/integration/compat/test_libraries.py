"""Libraries that sit on kafka-python and confluent-kafka do the same on this package's faces.

Each program runs in a process of its own, because the libraries import their client once.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
from tests.support.source_tree import ROOT

PROGRAMS = Path(__file__).parent / "libraries"


def run(face: str | None, program: str, servers: str, topic: str) -> Any:
    """What the program prints, run on the client it was written for, or on a face."""
    command = [sys.executable] if face is None else [sys.executable, "-m", face]
    done = subprocess.run(
        [*command, str(PROGRAMS / program), servers, topic],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("program", "face"),
    [
        ("traced_orders.py", "pyclient.compat.kafka_python"),
        ("kombu_queue.py", "pyclient.compat.confluent"),
    ],
)
def test_a_library_does_the_same_under_both_packages(program: str, face: str) -> None:
    with Broker(config={"group.initial.rebalance.delay.ms": 0}) as broker:
        servers = broker.bootstrap_servers
        theirs = run(None, program, servers, "theirs")
        ours = run(face, program, servers, "ours")
    assert ours == theirs
