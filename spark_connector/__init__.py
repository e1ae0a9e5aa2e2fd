"""A Spark source and sink for Kafka on Spark's Python Data Source API, without a jar.

    import spark_connector
    spark_connector.register(spark)
    spark.readStream.format("pykafka").option("subscribe", "orders")...

Importing this package imports neither PySpark nor the client; `register` does.

- `data_source`: what Spark asks for by `format("pykafka")`; `options`: its options
- `batch_reader`, `stream_reader`: plan a query on the driver
- `offset_reader`: queries the cluster; `offsets`, `offset_range_calculator`: offsets and ranges
- `partition_reader`: reads one range on an executor; `record_converter`: records to Arrow and back
- `writer`: writes rows
- `environment`: checks that Java is installed
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
