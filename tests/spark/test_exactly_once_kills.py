"""An exactly-once stream that is killed at random and started again writes each row once."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import spark_connector
from broker_stub import Broker
from tests.interop.apache_kafka import ApacheKafka
from tests.spark.committed import committed
from tests.spark.topics import create, fill

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": str(ROOT),
    "SPARK_LOCAL_IP": "127.0.0.1",
}
ROWS_A_ROUND = 240  # six batches or more: a run is killed before it has done them
KILL_SECONDS = 4.0  # from the start of the query; batches take about half a second
KILLS, KILLS_SOAK = 5, 30


@pytest.fixture(autouse=True)
def java() -> None:
    try:
        spark_connector.require_java()
    except spark_connector.MissingJavaError as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))


class Program:
    """A run of the stream in a process of its own."""

    def __init__(self, servers: str, folder: Path, trigger: str) -> None:
        program = ROOT / "tests" / "spark" / "once_program.py"
        self._log = folder / "program.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(program), servers, str(folder / "checkpoint"), trigger],
                cwd=ROOT,
                env=ENVIRONMENT,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # a group to kill: the JVM belongs to it
            )

    def wait_until_started(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"STARTED"):
                return
        raise AssertionError(f"the program did not start:\n{self._told()}")

    def kill_after(self, seconds: float) -> None:
        """`kill -9` of the driver and its JVM, which fails its tasks' processes, too."""
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        else:
            raise AssertionError(f"the program ended by itself:\n{self._told()}")

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def wait_until_done(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.read()
        assert self._process.wait(timeout=60) == 0, self._told()

    def _told(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


def check(servers: str, folder: Path, kills: int, seed: int) -> None:
    chosen = random.Random(seed)
    moments = [chosen.uniform(0, KILL_SECONDS) for _ in range(kills)]
    print(f"seed {seed}: killed after {[round(one, 2) for one in moments]}", flush=True)
    create(servers, {"in": 2, "out": 2})
    expected: list[bytes] = []
    for number, moment in enumerate([*moments, None]):
        rows = [b"%d/%d" % (number, row) for row in range(ROWS_A_ROUND)]
        fill(servers, "in", rows, 2)
        expected += rows
        program = Program(servers, folder, "availableNow" if moment is None else "")
        try:
            if moment is None:
                program.wait_until_done()
            else:
                program.wait_until_started()
                program.kill_after(moment)
        finally:
            program.kill()
    found = committed(servers, "out")
    assert len(found) == len(expected), f"seed {seed}"
    assert found == sorted(expected), f"seed {seed}"


@pytest.mark.timeout(400)
def test_five_kills(tmp_path: Path) -> None:
    with Broker() as broker:
        check(broker.bootstrap_servers, tmp_path, KILLS, seed=17)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_thirty_kills_on_our_broker(tmp_path: Path) -> None:
    """By `make soak-spark`."""
    with Broker() as broker:
        check(broker.bootstrap_servers, tmp_path, KILLS_SOAK, seed=random.randrange(10**6))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_thirty_kills_on_apache_kafka(apache: ApacheKafka, tmp_path: Path) -> None:
    """By `make soak-spark`."""
    check(apache.bootstrap_servers, tmp_path, KILLS_SOAK, seed=random.randrange(10**6))
