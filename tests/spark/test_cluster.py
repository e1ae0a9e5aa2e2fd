"""A standalone cluster on this machine: a master, two workers, an executor that is killed."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyspark
import pytest

import spark_connector
from broker_stub import Broker
from tests.spark.topics import fill, read_all

ROOT = Path(__file__).parents[2]
START_SECONDS = 90
ENVIRONMENT = {
    **os.environ,
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": str(ROOT),
    "SPARK_LOCAL_IP": "127.0.0.1",
}

JOB = """
import sys
from pyspark.sql import SparkSession
import spark_connector

master, servers, folder = sys.argv[1:]
spark = (
    SparkSession.builder.master(master).appName("cluster").config("spark.ui.enabled", "false")
    .config("spark.log.level", "ERROR").config("spark.executor.memory", "512m")
    .config("spark.cores.max", "2").config("spark.executor.cores", "1")
    .config("spark.speculation", "true").config("spark.speculation.minTaskRuntime", "1s")
    .getOrCreate()
)
spark_connector.register(spark)
options = {"kafka.bootstrap.servers": servers, "subscribe": "in"}
rows = spark.read.format("pykafka").options(**options).option("minPartitions", "8").load()
print("COUNT", rows.select("partition", "offset").distinct().count(), rows.count(), flush=True)
stream = spark.readStream.format("pykafka").options(**options)
query = (
    stream.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "100").load()
    .selectExpr("key", "value").writeStream.format("pykafka").options(**options)
    .option("topic", "out").option("checkpointLocation", folder)
    .trigger(availableNow=True).start()
)
while query.isActive and len(query.recentProgress) < 2:
    query.awaitTermination(0.2)
print("KILL", flush=True)
query.awaitTermination()
print("BATCHES", len(query.recentProgress), flush=True)
spark.stop()
"""


class Daemon:
    """A master or a worker; a thread reads what it prints."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
        self.process = subprocess.Popen(
            [str(spark_class), *arguments],
            cwd=folder,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def wait_for(self, pattern: str) -> str:
        """The first match in what it prints."""
        while True:
            found = re.search(pattern, self._lines.get(timeout=START_SECONDS))
            if found:
                return found.group()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=10)
        self._reader.join()


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


@pytest.mark.timeout(500)
def test_a_pipeline_on_a_cluster_loses_nothing_when_an_executor_is_killed(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    try:
        spark_connector.require_java()
    except spark_connector.MissingJavaError as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
    servers = kafka_broker.bootstrap_servers
    kafka_broker.create_topic("in", partitions=2)
    values = [f"v{number}".encode() for number in range(600)]
    fill(servers, "in", values, 2)
    deploy, local = "org.apache.spark.deploy", ("--host", "127.0.0.1", "--webui-port", "0")
    with Daemon(tmp_path, f"{deploy}.master.Master", *local, "--port", "0") as master:
        url = master.wait_for(r"spark://127\.0\.0\.1:\d+")
        worker = (f"{deploy}.worker.Worker", *local, "--cores", "1", "--memory", "1g", url)
        with Daemon(tmp_path, *worker) as one, Daemon(tmp_path, *worker) as two:
            one.wait_for("registered with master")
            two.wait_for("registered with master")
            job = subprocess.Popen(
                [sys.executable, "-c", JOB, url, servers, str(tmp_path / "checkpoint")],
                cwd=ROOT,
                env=ENVIRONMENT,
                stdout=subprocess.PIPE,
                stderr=(tmp_path / "job.log").open("wb"),
                text=True,
            )
            assert job.stdout is not None
            try:
                told = []
                for line in job.stdout:
                    told.append(line.strip())
                    if line.startswith("KILL"):
                        executors = children(one.process.pid)
                        assert executors
                        os.kill(executors[0], signal.SIGKILL)
                assert job.wait(timeout=60) == 0, (tmp_path / "job.log").read_text()[-3000:]
            finally:
                job.kill()
    assert "COUNT 600 600" in told
    written = [record.value for record in read_all(servers, "out")]
    assert set(written) == set(values)
