"""The examples of docs/spark.md on writing, watching and jobs run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker_stub import Broker
from spark_connector.job.config import QUERY_KEYS, TOP_KEYS, TOPIC_KEYS
from spark_connector.sink_options import SINK_KEYS
from tests.spark.topics import read_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
SECTIONS = GUIDE.split("\n## Writing\n", 1)[1]


def test_the_examples_run(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", SECTIONS, re.DOTALL):
        text = example.replace("localhost:9092", kafka_broker.bootstrap_servers)
        exec(text.replace("/tmp/", f"{tmp_path}/"), names)
    written = [record.value for record in read_all(kafka_broker.bootstrap_servers, "shouted")]
    assert sorted(written) == sorted(b"ORDER %d" % number for number in range(1000))
    told = capsys.readouterr().out
    assert "watched: batch 0, 1,000 rows" in told
    assert "orders-0" in told


def test_the_guide_names_every_key() -> None:
    for key in (*TOP_KEYS, *TOPIC_KEYS, *QUERY_KEYS, *SINK_KEYS):
        assert re.search(rf"`[^`]*\b{re.escape(key)}`", SECTIONS), key
