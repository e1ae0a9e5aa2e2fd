"""A Spark source and sink for Kafka on Spark's Python Data Source API: no jar.

    import spark_connector
    spark_connector.register(spark)
    spark.readStream.format("pykafka").option("subscribe", "orders")...

Importing this package imports neither PySpark nor the client; both come with `register`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_connector.environment import MissingJavaError, require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FORMAT", "MissingJavaError", "register", "require_java"]

FORMAT = "pykafka"


def register(spark: SparkSession) -> None:
    """Make `format("pykafka")` known to a session, for reading and writing, batch and stream."""
    from spark_connector.data_source import KafkaDataSource

    spark.dataSource.register(KafkaDataSource)
