"""docs/load-tests.md: its commands and example scripts run as they stand."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from broker_stub import Broker
from pyclient.cli.main import main

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "load-tests.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^pyclient (.+)$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0


def test_there_are_commands() -> None:
    assert len(COMMANDS) == 3


@pytest.mark.parametrize(
    ("script", "says"),
    [("load_test.py", "1000 records sent, "), ("round_trip_latency.py", "500 records, 99th")],
)
def test_an_example_runs(script: str, says: str, tmp_path: Path, kafka_broker: Broker) -> None:
    command = [sys.executable, str(ROOT / "docs" / "examples" / script)]
    done = subprocess.run(
        [*command, kafka_broker.bootstrap_servers],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(says)
    if script == "load_test.py":
        assert "<svg" in (tmp_path / "report.html").read_text()
