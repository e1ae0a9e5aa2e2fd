"""The data source `pykafka`: what Spark asks for by `format("pykafka")`."""

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from spark_connector.batch_reader import KafkaBatchReader
from spark_connector.options import includes_headers, parse_sink_options, parse_source_options
from spark_connector.record_converter import source_schema
from spark_connector.stream_reader import KafkaStreamReader
from spark_connector.writer import KafkaBatchWriter, KafkaStreamWriter


class KafkaDataSource(DataSource):
    """Options are checked here, on the driver, so that a mistake fails before any task."""

    @classmethod
    def name(cls) -> str:
        """The format's name. `kafka` itself is refused by the JVM."""
        return "pykafka"

    def schema(self) -> str:
        """The JVM connector's schema."""
        return source_schema(include_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> KafkaBatchReader:  # noqa: ARG002
        """Create the reader of `spark.read`."""
        return KafkaBatchReader(parse_source_options(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> KafkaStreamReader:  # noqa: ARG002, N802
        """Create the reader of `spark.readStream`."""
        return KafkaStreamReader(parse_source_options(self.options, streaming=True))

    # Spark passes both arguments by these very names.
    def writer(self, schema: StructType, overwrite: bool) -> KafkaBatchWriter:
        """Create the writer of `df.write`."""
        if overwrite:
            raise ValueError('Save mode overwrite is not allowed for Kafka: use mode("append")')
        return KafkaBatchWriter(schema, parse_sink_options(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaStreamWriter:  # noqa: ARG002, N802
        """For `df.writeStream`; output mode complete writes every row of every batch."""
        return KafkaStreamWriter(schema, parse_sink_options(self.options))
