"""The README's Spark example runs as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker_stub import Broker
from tests.spark.topics import fill
from tests.support.readme import example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_spark_job_runs(
    spark: SparkSession, kafka_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(kafka_broker.bootstrap_servers, "orders", [b"one espresso"])
    exec(example("In a Spark job", kafka_broker.bootstrap_servers), {})
    assert "one espresso" in capsys.readouterr().out
