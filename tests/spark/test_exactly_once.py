"""The exactly-once sink in real Spark: the guide's examples, restarts, a driver that fails."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker_stub import Broker
from tests.spark.committed import committed
from tests.spark.topics import fill

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GUIDE = (Path(__file__).parents[2] / "docs" / "spark-exactly-once.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def test_the_stream_of_the_guide_writes_each_row_once_over_restarts(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    servers = kafka_broker.bootstrap_servers
    kafka_broker.create_topic("orders", partitions=2)
    text = EXAMPLES[0].replace("localhost:9092", servers).replace("/tmp/", f"{tmp_path}/")
    for run in range(2):
        fill(servers, "orders", [b"run %d row %d" % (run, row) for row in range(50)], 2)
        exec(text, {"spark": spark})
    # The last batch again, as after a crash before Spark has noted that it was committed.
    newest = max((tmp_path / "shouting-once" / "commits").glob("[0-9]*"), key=lambda p: int(p.name))
    newest.unlink()
    (newest.parent / f".{newest.name}.crc").unlink(missing_ok=True)
    exec(text, {"spark": spark})
    assert committed(servers, "shouted") == sorted(
        b"RUN %d ROW %d" % (run, row) for run in range(2) for row in range(50)
    )


def test_for_each_batch_may_repeat_a_batch_and_a_failed_job_shows_nothing(
    spark: SparkSession, kafka_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    finish, write = (
        text.replace("localhost:9092", kafka_broker.bootstrap_servers) for text in EXAMPLES[1:3]
    )
    kafka_broker.create_topic("reports", partitions=1)
    exec(write, names)

    def frame(number: int) -> DataFrame:
        return spark.range(4, numPartitions=2).selectExpr(f"concat('{number}/', id) value")

    for number in (0, 0, 1):
        names["write"](frame(number), number)
    expected = [b"%d/%d" % (number, row) for number in (0, 1) for row in range(4)]
    assert committed(kafka_broker.bootstrap_servers, "reports") == expected
    failing = frame(2).selectExpr("if(value = '2/3', raise_error('planned'), value) value")
    with pytest.raises(Exception, match="planned"):
        names["write"](failing, 2)
    assert committed(kafka_broker.bootstrap_servers, "reports") == expected
    names["write"](frame(2), 2)
    assert len(committed(kafka_broker.bootstrap_servers, "reports")) == 12
    exec(finish, names)
    assert "None" in capsys.readouterr().out  # another prefix, which nobody has used
