"""`python -m spark_connector job.properties`: runs a streaming job that a file describes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import spark_connector
from spark_connector.environment import MissingJavaError, require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STOPPED, _FAILED, _WRONG = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a job; returns 0 once stopped or ended, 1 if a query failed, 2 if the job is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m spark_connector",
        description="Run the streams that a file describes; docs/spark.md lists its keys.",
    )
    parser.add_argument("job", help="a .properties or .toml file: a path, or a URL such as hdfs://")
    parser.add_argument("--dry-run", action="store_true", help="check everything, start nothing")
    parser.add_argument(
        "--every", type=float, default=5.0, metavar="SECONDS", help="how often to print progress"
    )
    given = parser.parse_args(arguments)
    try:
        require_java()
    except MissingJavaError as error:
        print(error, file=sys.stderr)
        return _WRONG
    # A thread's wait can be ended by a signal's handler; Spark's own waits cannot.
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return run_job(given.job, stop, dry_run=given.dry_run, every_seconds=given.every)


def run_job(
    path: str, stop: threading.Event, *, dry_run: bool = False, every_seconds: float = 5
) -> int:
    """Run the job of a file until it ends or `stop` is set; returns the exit status."""
    from spark_connector.job.config import parse_job
    from spark_connector.job.files import JobError, read_job
    from spark_connector.job.plan import plan, summary
    from spark_connector.job.runner import JobRun

    try:
        job = parse_job(read_job(path, lambda: _session("kafka job", {})), path)
        spark = _session(job.name, job.spark)
        spark_connector.register(spark)
        queries = plan(job, spark)
        if dry_run:
            for line in summary(job, queries, spark):
                print(line)
            return _STOPPED
        return (
            _STOPPED
            if JobRun(job, queries, every_seconds=every_seconds).run(stop.wait)
            else _FAILED
        )
    except JobError as error:
        print(error, file=sys.stderr)
        return _WRONG


def _session(name: str, settings: Any) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(f"spark.{key}", value)
    return builder.getOrCreate()


if __name__ == "__main__":
    sys.exit(main())
