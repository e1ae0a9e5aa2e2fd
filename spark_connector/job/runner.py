"""Starts a job's queries as streams, and watches them until one fails or the job is stopped."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, TextIO

from pyspark.errors import PySparkException

from spark_connector.data_source import KafkaDataSource
from spark_connector.job.config import Job
from spark_connector.job.files import JobError, first_line
from spark_connector.job.plan import PlannedQuery, sink_options
from spark_connector.query_progress import status_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

_PAUSE_SECONDS: Final = 0.2


class JobRun:
    """The running queries of a job.

    Args:
        job: where the queries come from.
        queries: what to run.
        every_seconds: how often progress is printed; 0 for never.
        out: where to.
    """

    def __init__(
        self,
        job: Job,
        queries: list[PlannedQuery],
        *,
        every_seconds: float = 5,
        out: TextIO | None = None,
    ) -> None:
        self._job = job
        self._planned = queries
        self._every_seconds = every_seconds
        self._out = sys.stdout if out is None else out
        self._running: list[StreamingQuery] = []
        self._cleanup = ExitStack()

    def run(self, stopped: Callable[[float], bool]) -> bool:
        """Run until all queries have ended, one has failed, or the job is stopped.

        Args:
            stopped: waits for so many seconds, and tells whether the job is to stop.

        Returns:
            Whether no query failed.
        """
        try:
            for one in self._planned:
                self._running.append(self._start(one))
            return self._watch(stopped)
        finally:
            for query in self._running:
                query.stop()
            self._cleanup.close()

    def _start(self, planned: PlannedQuery) -> StreamingQuery:
        query = planned.query
        writer: Any = planned.frame.writeStream.queryName(query.name).outputMode(query.mode)
        checkpoint = query.checkpoint
        if checkpoint is None:  # of a console only
            folder = tempfile.TemporaryDirectory(prefix="job-", ignore_cleanup_errors=True)
            checkpoint = self._cleanup.enter_context(folder)
        writer = writer.option("checkpointLocation", checkpoint)
        if query.trigger is not None:
            writer = writer.trigger(**trigger(query.trigger, f"{self._job.path}: {query.name}"))
        if query.sink == "console":
            writer = writer.format("console").option("truncate", "false")
        elif query.sink == "files":
            writer = writer.format(query.format).option("path", query.path)
            if query.partition_by:
                writer = writer.partitionBy(*query.partition_by)
        elif query.mode == "update":
            # Spark offers no update mode to Python sinks: each batch is written on its own.
            writer = writer.foreachBatch(_write_batch(sink_options(self._job, query)))
        else:
            options = sink_options(self._job, query)
            writer = writer.format(KafkaDataSource.name()).options(**options)
        try:
            started: StreamingQuery = writer.start()
        except PySparkException as error:
            raise JobError(
                f"{self._job.path}: query.{query.name} did not start: {first_line(error)}"
            ) from error
        return started

    def _watch(self, stopped: Callable[[float], bool]) -> bool:
        waited = 0.0
        while True:
            active = [query for query in self._running if query.isActive]
            for query in self._running:
                error = query.exception()
                if error is not None:
                    self._print(f"{query.name} failed: {first_line(error)}")
                    return False
            if not active:
                self._print_status()
                self._print("all queries have ended")
                return True
            if stopped(_PAUSE_SECONDS):
                self._print("stopped")
                return True
            waited += _PAUSE_SECONDS
            if self._every_seconds and waited >= self._every_seconds:
                waited = 0.0
                self._print_status()

    def _print_status(self) -> None:
        for query in self._running:
            self._print(status_line(query.name, query.lastProgress))

    def _print(self, line: str) -> None:
        print(line, file=self._out, flush=True)


def trigger(text: str, where: str) -> dict[str, Any]:
    """The arguments of Spark's `trigger`: `availableNow`, or a time such as `5 seconds`.

    Raises:
        JobError: the text is empty.
    """
    if not text.strip():
        raise JobError(f"{where}: trigger is empty: use availableNow, or a time as '5 seconds'")
    if text.strip().lower() == "availablenow":
        return {"availableNow": True}
    return {"processingTime": text.strip()}


def _write_batch(options: dict[str, str]) -> Callable[[DataFrame, int], None]:
    def write(frame: DataFrame, _batch: int) -> None:
        frame.write.format(KafkaDataSource.name()).mode("append").options(**options).save()

    return write
