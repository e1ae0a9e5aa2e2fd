"""The same connector on Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.interop.apache_kafka import ApacheKafka
from tests.spark.topics import read_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_writes_to_apache_kafka_and_reads_it_back(
    spark: SparkSession, apache: ApacheKafka
) -> None:
    servers = apache.bootstrap_servers
    frame = spark.range(500).selectExpr("cast(id as string) key", "concat('value ', id) value")
    frame.write.format("pykafka").mode("append").option("kafka.bootstrap.servers", servers).option(
        "topic", "from-spark"
    ).option("kafka.compression.type", "zstd").save()
    written = {record.key: record.value for record in read_all(servers, "from-spark")}
    assert written == {str(n).encode(): f"value {n}".encode() for n in range(500)}
    rows = (
        spark.read.format("pykafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "from-spark")
        .load()
        .collect()
    )
    assert {bytes(row.key): bytes(row.value) for row in rows} == written
