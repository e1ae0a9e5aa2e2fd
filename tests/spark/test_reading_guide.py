"""The examples of docs/spark.md on reading run as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker_stub import Broker
from spark_connector.source_options import SOURCE_KEYS
from tests.spark.topics import fill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
SECTION = GUIDE.split("\n## Reading\n", 1)[1].split("\n## ", 1)[0]
EXAMPLES = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


def test_the_examples_run(
    spark: SparkSession, kafka_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = kafka_broker.bootstrap_servers
    fill(servers, "orders", [b"one espresso"])
    pages = [json.dumps({"page": f"/{n % 2}"}).encode() for n in range(6)]
    fill(servers, "clicks", pages)
    namespace: dict[str, object] = {}
    try:
        for example in EXAMPLES:
            exec(example.replace("localhost:9092", servers), namespace)
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    told = capsys.readouterr().out
    assert "one espresso" in told
    assert re.search(r"/0\s*\|\s*3", told)
    assert told.rstrip().endswith("0")  # none of that minute


def test_every_option_is_described() -> None:
    named = set(re.findall(r"`([A-Za-z.]+)`", SECTION))
    assert set(SOURCE_KEYS) <= named
