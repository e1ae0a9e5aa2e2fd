"""What Spark calls: writers on the driver and in tasks.

Of a stream, the writer that commits is not the one that made the tasks: what it needs is in their
messages.
"""

import logging
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyclient.entropy import Entropy
from spark_connector.exactly_once.decisions import State
from spark_connector.exactly_once.driver import (
    abort_batch,
    commit_batch,
    finish_last,
)
from spark_connector.exactly_once.names import (
    GENERATIONS,
    Attempt,
    PreparedTask,
    TaskTransaction,
    stream_key,
)
from spark_connector.exactly_once.sink import ExactlyOnceSink
from spark_connector.exactly_once.task import write_task
from spark_connector.sink_columns import check_sink_schema

log = logging.getLogger(__name__)

_Messages = Sequence[WriterCommitMessage | None]
_End = Callable[[ExactlyOnceSink, str, int, list[TaskTransaction]], None]


class ExactlyOnceStreamWriter(DataSourceStreamArrowWriter):
    """The sink of a streaming query."""

    def __init__(self, schema: StructType, sink: ExactlyOnceSink) -> None:
        _check(schema, sink)
        self._sink = sink
        self._generation = Entropy().below(GENERATIONS)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows: runs on an executor."""
        task = _task_context()
        query_id = task.getLocalProperty("sql.streaming.queryId")
        number = task.getLocalProperty("streaming.sql.batchId")
        assert query_id is not None, "not in a streaming query"
        assert number is not None, "not in a streaming query"
        key = stream_key(self._sink.prefix, query_id)
        return write_task(iterator, self._sink, _attempt(task, key, int(number), self._generation))

    def commit(self, messages: _Messages, batchId: int) -> None:  # noqa: N803
        """Decide the batch and commit its transactions: runs on the driver."""
        _end(commit_batch, self._sink, messages, batchId)

    def abort(self, messages: _Messages, batchId: int) -> None:  # noqa: N803
        """Abort the transactions, unless the batch is decided: runs on the driver."""
        _end(abort_batch, self._sink, messages, batchId)


class ExactlyOnceBatchWriter(DataSourceArrowWriter):
    """The sink of a batch query. Making it finishes what the last job has left."""

    def __init__(self, schema: StructType, sink: ExactlyOnceSink) -> None:
        _check(schema, sink)
        last = finish_last(sink, sink.prefix)
        self._sink = sink
        self._generation = Entropy().below(GENERATIONS)
        if sink.batch_id is not None:
            self._number = sink.batch_id
        else:
            self._number = 0 if last is None else last.number + 1
            if last is not None and last.state is State.VOID:
                log.warning(
                    "the last write of %s is void: none of its rows is visible", sink.prefix
                )
                self._number = last.number

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows: runs on an executor."""
        attempt = _attempt(_task_context(), self._sink.prefix, self._number, self._generation)
        return write_task(iterator, self._sink, attempt)

    def commit(self, messages: _Messages) -> None:
        """Decide the job and commit its transactions: runs on the driver."""
        _end(commit_batch, self._sink, messages, self._number)

    def abort(self, messages: _Messages) -> None:
        """Abort the transactions, unless the job is decided: runs on the driver."""
        _end(abort_batch, self._sink, messages, self._number)


def _check(schema: StructType, sink: ExactlyOnceSink) -> None:
    options = sink.sink
    check_sink_schema(schema, options.topic, include_timestamp=options.include_timestamp)
    sink.check()


def _task_context() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "not in a task"
    return task


def _attempt(task: TaskContext, key: str, number: int, generation: int) -> Attempt:
    return Attempt(key, number, task.partitionId(), task.attemptNumber(), generation)


def _end(end: _End, sink: ExactlyOnceSink, messages: _Messages, number: int) -> None:
    told = [one for one in messages if isinstance(one, PreparedTask)]
    if told:  # without any, nothing was written
        transactions = [one.transaction for one in told if one.transaction is not None]
        end(sink, told[0].key, number, transactions)
