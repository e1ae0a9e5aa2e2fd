"""`df.write` and `df.writeStream`: Arrow batches in, records out, at least once.

A task opens its producer with its first row, sends, waits until every record is acknowledged, and
fails if any record failed; Spark then tries the task again, which may repeat records that had
already been written.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyclient import KafkaProducer, SentRecords
from pyclient.errors import KafkaError
from spark_connector.sink_columns import check_sink_schema, sink_columns
from spark_connector.sink_options import SinkOptions


@dataclass
class WrittenRecords(WriterCommitMessage):
    """What one task wrote."""

    count: int


class KafkaBatchWriter(DataSourceArrowWriter):
    """The sink of a batch query."""

    def __init__(self, schema: StructType, options: SinkOptions) -> None:
        check_sink(schema, options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows: runs on an executor."""
        return write_batches(iterator, self._options)


class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """The sink of a streaming query."""

    def __init__(self, schema: StructType, options: SinkOptions) -> None:
        check_sink(schema, options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows: runs on an executor."""
        return write_batches(iterator, self._options)


def check_sink(schema: StructType, options: SinkOptions) -> None:
    """Check on the driver what would fail in every task: columns, client options, brokers.

    Raises:
        ValueError: a column or a `kafka.*` option is wrong.
        KafkaError: no broker answers within `kafka.bootstrap.timeout.ms`.
    """
    check_sink_schema(schema, options.topic, include_timestamp=options.include_timestamp)
    KafkaProducer(**options.client).close()


def write_batches(batches: Iterator[pa.RecordBatch], options: SinkOptions) -> WrittenRecords:
    """Send every row and wait until all are acknowledged.

    Raises:
        KafkaError: records could not be delivered; tells how many, and why the first.
    """
    task = _Task(options)
    try:
        for batch in batches:
            if batch.num_rows:
                task.send(batch)
        return WrittenRecords(task.finish())
    finally:
        task.close()


def check_delivered(sent: SentRecords) -> int:
    """How many records were written, if all were.

    Raises:
        KafkaError: some were not; tells how many, and why the first.
    """
    failures = sent.failures()
    if failures:
        row, error = next(iter(failures.items()))
        place = sent[row].topic_partition
        raise KafkaError(
            f"{len(failures)} of {len(sent)} records of a batch were not written; the first, "
            f"row {row} for topic '{place.topic}', failed with {error!r}"
        ) from error
    return len(sent)


class _Task:
    """The producer of one task, and the batches that are not acknowledged yet."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        # Spark calls every task, also without rows: those open no connection.
        self._producer: KafkaProducer | None = None
        self._pending: deque[SentRecords] = deque()
        self._written = 0

    def send(self, batch: pa.RecordBatch) -> None:
        options = self._options
        if self._producer is None:
            self._producer = KafkaProducer(**options.client)
        columns = sink_columns(batch, options.topic, include_timestamp=options.include_timestamp)
        self._pending.append(self._producer.send_arrow(options.topic, columns, allow_null=True))
        # What is sent keeps its columns alive until it is forgotten.
        while self._pending and self._pending[0].is_done:
            self._written += check_delivered(self._pending.popleft())

    def finish(self) -> int:
        """Wait for all records; returns how many were written."""
        if self._producer is not None:
            self._producer.flush()
        while self._pending:
            self._written += check_delivered(self._pending.popleft())
        return self._written

    def close(self) -> None:
        """Drop what was not acknowledged, if the task failed."""
        if self._producer is not None:
            self._producer.close(timeout=0)
