"""The data source `pykafka`: what Spark asks for by `format("pykafka")`."""

from collections.abc import Iterator
from typing import Any, NoReturn

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from spark_connector.batch_reader import FilteringBatchReader, KafkaBatchReader
from spark_connector.exactly_once.sink import parse_exactly_once
from spark_connector.exactly_once.writers import ExactlyOnceBatchWriter, ExactlyOnceStreamWriter
from spark_connector.record_converter import source_schema
from spark_connector.sink_options import parse_sink_options
from spark_connector.source_options import (
    check_source_options,
    includes_headers,
    parse_source_options,
)
from spark_connector.stream_reader import KafkaStreamReader
from spark_connector.writer import KafkaBatchWriter, KafkaStreamWriter


class KafkaDataSource(DataSource):
    """Options are checked here, on the driver, so that a mistake fails before any task."""

    @classmethod
    def name(cls) -> str:
        """The format's name. `kafka` itself is refused by the JVM."""
        return "pykafka"

    def schema(self) -> str:
        """The JVM connector's schema. Spark asks for it when a DataFrame is loaded."""
        check_source_options(self.options)
        return source_schema(include_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        """Create the reader of `spark.read`."""
        options = parse_source_options(self.options, streaming=False)
        return (FilteringBatchReader if options.push_filters else KafkaBatchReader)(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """Create the reader of `spark.readStream`."""
        try:
            return KafkaStreamReader(parse_source_options(self.options, streaming=True))
        except ValueError as error:
            # PySpark's worker hides what is raised here behind an UnboundLocalError.
            return _RefusedStream(error)

    # Spark passes both arguments by these very names.
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Create the writer of `df.write`."""
        if overwrite:
            raise ValueError('Save mode overwrite is not allowed for Kafka: use mode("append")')
        options = parse_sink_options(self.options)
        sink = parse_exactly_once(self.options, options, streaming=False)
        if sink is not None:
            return ExactlyOnceBatchWriter(schema, sink)
        return KafkaBatchWriter(schema, options)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002
    ) -> DataSourceStreamArrowWriter:
        """For `df.writeStream`; output mode complete writes every row of every batch."""
        options = parse_sink_options(self.options)
        sink = parse_exactly_once(self.options, options, streaming=True)
        if sink is not None:
            return ExactlyOnceStreamWriter(schema, sink)
        return KafkaStreamWriter(schema, options)


class _RefusedStream(DataSourceStreamReader):
    """Raises the error of wrong options with the first call."""

    def __init__(self, error: ValueError) -> None:
        self._error = error

    def initialOffset(self) -> NoReturn:  # noqa: N802
        raise self._error

    def latestOffset(self, *_: Any) -> NoReturn:  # noqa: N802
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> NoReturn:  # noqa: ARG002
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        raise self._error
