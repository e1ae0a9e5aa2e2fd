"""A Spark source and sink for Kafka on Spark's Python Data Source API, without a jar.

    import spark_connector
    spark_connector.register(spark)
    spark.readStream.format("pykafka").option("subscribe", "orders")...

Importing this package imports neither PySpark nor the client; `register` does.

- `data_source`: what Spark asks for by `format("pykafka")`; `discovery`: found without `register`
- `options`, `source_options`, `sink_options`: its options
- `batch_reader`, `stream_reader`: plan a query on the driver; `filters`: what it need not read
- `offset_reader`: queries the cluster; `offsets`, `offset_range_calculator`: offsets and ranges
- `partition_reader`: reads one range on an executor; `record_converter`: records to Arrow
- `data_loss`: what happens when records are gone
- `writer`: writes rows; `sink_columns`: which columns
- `exactly_once/`: the same in transactions, on demand
- `active_session`: lets every Python thread write
- `alias`: makes `format("kafka")` mean this connector
- `query_progress`: shows what a query does; `job/`: a job by configuration alone
- `environment`, `executors`: check that Java is installed, and what executors run
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_connector.alias import FORMAT, use_as_kafka
from spark_connector.environment import MissingJavaError, require_java
from spark_connector.executors import ExecutorEnvironmentError
from spark_connector.query_progress import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "FORMAT",
    "ExecutorEnvironmentError",
    "MissingJavaError",
    "progress",
    "register",
    "require_java",
    "use_as_kafka",
]


def register(spark: SparkSession, *, check_executors: bool = True) -> None:
    """Make `format("pykafka")` known to a session, for reading and writing, batch and stream.

    Args:
        spark: a session, classic or Spark Connect.
        check_executors: run a short job that imports the connector on the executors.

    Raises:
        ExecutorEnvironmentError: executors run another Python, or lack this package.
    """
    from spark_connector import executors
    from spark_connector.active_session import activate_on_write
    from spark_connector.data_source import KafkaDataSource

    activate_on_write()
    spark.dataSource.register(KafkaDataSource)
    if check_executors:
        executors.check_executors(spark)
