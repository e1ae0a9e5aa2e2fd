"""`df.write` and `df.writeStream`: Arrow batches in, records out, at least once.

A task opens its producer with its first row, sends, flushes, and fails if any record failed;
Spark then tries the task again, which may repeat records that had already been written.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyclient import KafkaProducer
from pyclient.errors import KafkaError
from spark_connector.options import SinkOptions
from spark_connector.record_converter import SinkColumns, check_sink_schema


@dataclass
class WrittenRecords(WriterCommitMessage):
    """What one task wrote."""

    count: int


class KafkaBatchWriter(DataSourceArrowWriter):
    """The sink of a batch query."""

    def __init__(self, schema: StructType, options: SinkOptions) -> None:
        check_sink_schema(schema, options.topic)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows: runs on an executor."""
        return write_batches(iterator, self._options)


class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """The sink of a streaming query."""

    def __init__(self, schema: StructType, options: SinkOptions) -> None:
        check_sink_schema(schema, options.topic)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows: runs on an executor."""
        return write_batches(iterator, self._options)


def write_batches(batches: Iterator[pa.RecordBatch], options: SinkOptions) -> WrittenRecords:
    """Send every row and wait until all are acknowledged.

    Raises:
        KafkaError: the first record that could not be delivered, and why.
    """
    count = 0
    failures: list[Exception] = []
    producer: KafkaProducer | None = None
    try:
        for batch in batches:
            # Spark calls every task, also without rows: those open no connection.
            if producer is None and batch.num_rows:
                producer = KafkaProducer(**options.client)
            for topic, row in SinkColumns(batch, options.topic).rows():
                assert producer is not None
                producer.send(topic, **row).add_errback(failures.append)
                count += 1
            if failures:
                break
        if producer is not None:
            producer.flush()
    finally:
        if producer is not None:
            producer.close()
    if failures:
        raise KafkaError(
            f"{len(failures)} of {count} records were not written; the first: {failures[0]!r}"
        ) from failures[0]
    return WrittenRecords(count)
