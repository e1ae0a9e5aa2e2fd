"""Lets Spark find format `pykafka` without a `register` call. Installed as `pyspark_pykafka`.

Spark imports every module whose name starts with `pyspark_` when it first looks for a Python
source, and takes its `DefaultSource`. One that cannot be imported hides all others, so this one
imports nothing but PySpark; the connector comes with the first call.
"""

from typing import Any

from pyspark.sql.datasource import DataSource


class DefaultSource(DataSource):
    """Hands every call to `spark_connector.data_source.KafkaDataSource`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "pykafka"

    def schema(self) -> Any:
        """The source's columns."""
        return self._source().schema()

    def reader(self, schema: Any) -> Any:
        """For `spark.read`."""
        return self._source().reader(schema)

    def streamReader(self, schema: Any) -> Any:  # noqa: N802
        """For `spark.readStream`."""
        return self._source().streamReader(schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """For `df.write`."""
        return self._source().writer(schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
        """For `df.writeStream`."""
        return self._source().streamWriter(schema, overwrite)

    def _source(self) -> Any:
        from spark_connector.data_source import KafkaDataSource

        return KafkaDataSource(self.options)
