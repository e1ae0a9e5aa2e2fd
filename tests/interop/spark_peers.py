"""The same read by our Spark source and by Spark's own Kafka connector, as comparable outcomes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.interop.spark_jars import spark_kafka_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OURS, THEIRS = "pykafka", "kafka"


def session(folder: Path, **config: str) -> SparkSession:
    """A local session with both connectors."""
    from pyspark.sql import SparkSession

    import spark_connector

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("both connectors")
        .config("spark.jars", spark_kafka_jars())
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.log.level", "FATAL")
    )
    for key, value in config.items():
        builder = builder.config(key.replace("__", "."), value)
    made = builder.getOrCreate()
    spark_connector.register(made)
    return made


@dataclass(frozen=True)
class Outcome:
    """All rows, or the text of an error."""

    rows: tuple[tuple[Any, ...], ...] = ()
    error: str = ""


def read(spark: SparkSession, source: str, servers: str, options: Mapping[str, str]) -> Outcome:
    """What a batch read by one of the connectors gives."""
    try:
        reader = spark.read.format(source).option("kafka.bootstrap.servers", servers)
        return Outcome(rows=rows_of(reader.options(**options).load()))
    except Exception as error:  # noqa: BLE001  (every kind, of either connector)
        return Outcome(error=str(error))


def rows_of(frame: DataFrame) -> tuple[tuple[Any, ...], ...]:
    """The rows in a fixed order, bytes and times as plain values."""
    return tuple(sorted((_plain(row) for row in frame.collect()), key=lambda row: row[2:5]))


def _plain(row: Any) -> tuple[Any, ...]:
    return tuple(
        bytes(value)
        if isinstance(value, bytearray)
        else tuple((one.key, None if one.value is None else bytes(one.value)) for one in value)
        if isinstance(value, list)
        else value
        for value in row
    )
