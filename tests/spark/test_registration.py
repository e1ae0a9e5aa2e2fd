"""How Spark finds the connector: by its name, as `kafka`, in SQL; and what executors lack."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import spark_connector
from broker_stub import Broker
from tests.spark.topics import fill, read_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
SESSION = """
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.log.level", "ERROR").config("spark.sql.shuffle.partitions", "1").getOrCreate()
)
"""


def run_job(job: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program with Spark in a process of its own, away from the repository."""
    code = SESSION + textwrap.dedent(job)
    settings = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def test_a_job_written_for_the_jvm_connector_runs_unchanged(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    servers = kafka_broker.bootstrap_servers
    fill(servers, "in", [b"a", b"b", b"a"])
    # As an installed package has it: Spark finds the source without `register`.
    shutil.copytree(ROOT / "spark_connector" / "discovery", tmp_path / "pyspark_pykafka")
    done = run_job(
        f"""
        import spark_connector
        spark_connector.use_as_kafka()
        spark_connector.use_as_kafka()
        servers = {servers!r}
        frame = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
        rows = frame.option("subscribe", "in").load().selectExpr("key", "value")
        rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option(
            "topic", "batch"
        ).save()
        stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        counts = (
            stream.option("subscribe", "in").option("startingOffsets", "earliest").load()
            .groupBy("value").count().selectExpr("value key", "cast(count as string) value")
        )
        query = counts.writeStream.outputMode("update").start(
            format="kafka", topic="counts", checkpointLocation={str(tmp_path / "c")!r},
            **{{"kafka.bootstrap.servers": servers}},
        )
        query.processAllAvailable()
        query.stop()
        """,
        tmp_path,
        PYSPARK_PYTHON=sys.executable,
        PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(one.value for one in read_all(servers, "batch")) == [b"a", b"a", b"b"]
    counts = {one.key: one.value for one in read_all(servers, "counts")}
    assert counts == {b"a": b"2", b"b": b"1"}


def test_executors_without_the_package_are_noticed(tmp_path: Path) -> None:
    # The interpreter below this virtual environment: the same version, without the package.
    bare = (
        Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    )
    done = run_job(
        "import spark_connector\nspark_connector.register(spark)\n",
        tmp_path,
        PYSPARK_PYTHON=str(bare),
        PYSPARK_DRIVER_PYTHON=sys.executable,
    )
    assert done.returncode != 0
    assert "ExecutorEnvironmentError: executors cannot use the connector" in done.stderr
    assert f"{bare}: No module named 'pyclient'" in done.stderr
    assert "PYSPARK_PYTHON" in done.stderr


def test_a_view_reads_and_inserts_and_a_table_says_what_to_do(
    spark: SparkSession, kafka_broker: Broker
) -> None:
    servers = kafka_broker.bootstrap_servers
    fill(servers, "t", [b"a", b"b"])
    options = f"OPTIONS ('kafka.bootstrap.servers'='{servers}', subscribe='t')"
    spark.sql(f"CREATE TEMPORARY VIEW viewed USING pykafka {options}")
    spark.sql(
        "INSERT INTO viewed SELECT cast('k' as binary), cast('c' as binary), 't', 0, 0L, now(), 0"
    )
    values = spark.sql("SELECT cast(value as string) value FROM viewed ORDER BY offset").collect()
    assert [row.value for row in values] == ["a", "b", "c"]
    spark.sql(f"CREATE TABLE kept USING pykafka {options}")
    with pytest.raises(PySparkException, match="use CREATE TEMPORARY VIEW"):
        spark.sql("SELECT * FROM kept").collect()
    spark.sql("DROP TABLE kept")
    spark.sql("DROP VIEW viewed")


def test_a_wrong_option_of_a_stream_is_the_error_that_the_query_ends_with(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    fill(kafka_broker.bootstrap_servers, "t", [b"a"])
    stream = spark.readStream.format("pykafka").options(
        **{"kafka.bootstrap.servers": kafka_broker.bootstrap_servers, "subscribe": "t"}
    )
    query = (
        stream.option("endingOffsets", "latest")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    with pytest.raises(PySparkException, match="ending offset not valid in streaming") as raised:
        query.awaitTermination(100)
    assert "UnboundLocalError" not in str(raised.value)


def test_filters_that_are_pushed_give_the_same_rows(
    spark: SparkSession, kafka_broker: Broker
) -> None:
    fill(kafka_broker.bootstrap_servers, "t", [b"v"] * 100)
    reader = spark.read.format("pykafka").options(
        **{
            "kafka.bootstrap.servers": kafka_broker.bootstrap_servers,
            "subscribe": "t",
            "pushFilters": "true",
        }
    )
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        # `fill` writes a record a millisecond from this time on.
        start = "timestamp_millis(1700000000000)"
        kept = reader.load().filter(f"timestamp >= {start} + interval 0.090 seconds")
        assert kept.count() == 10
        assert reader.load().filter("offset >= 40 AND offset < 50 AND partition = 0").count() == 10
        assert reader.load().filter("partition = 1").count() == 0
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_registering_again_is_harmless(spark: SparkSession) -> None:
    spark_connector.register(spark)
