"""`python -m spark_connector`: the example jobs, dry runs, and errors before anything starts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker_stub import Broker
from pyclient import KafkaProducer
from spark_connector.__main__ import run_job
from tests.spark.topics import read_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def send(broker: Broker, topic: str, *events: dict[str, object]) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send_many(topic, [json.dumps(event).encode() for event in events])


def example(name: str, broker: Broker, folder: Path) -> Path:
    """An example that runs on this broker, in this folder, until it has read everything."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    text = text.replace("localhost:9092", broker.bootstrap_servers).replace("/tmp/", f"{folder}/")
    if name.endswith(".properties"):
        text += "trigger = availableNow\n"
    else:
        text = text.replace('trigger = "1 second"', 'trigger = "availableNow"')
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def values(broker: Broker, topic: str) -> list[tuple[bytes | None, object]]:
    records = read_all(broker.bootstrap_servers, topic)
    return sorted((record.key, json.loads(record.value or b"null")) for record in records)


def test_the_example_in_properties_runs(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = [
        {"id": n, "customer": f"c{n}", "amount": 30.0 * n, "at": f"2026-01-01T12:0{n % 3}:00Z"}
        for n in range(6)
    ]
    send(kafka_broker, "orders", *orders)
    path = example("orders.properties", kafka_broker, tmp_path)
    assert run_job(str(path), threading.Event(), dry_run=True) == 0
    dry = capsys.readouterr().out
    assert "view     big_orders: id bigint, customer string, amount double" in dry
    assert "query    big to topic big-orders (append): key string, value string" in dry
    assert not (tmp_path / "orders-checkpoint").exists()

    assert run_job(str(path), threading.Event()) == 0
    assert values(kafka_broker, "big-orders") == [
        (b"c4", {"id": 4, "amount": 120.0}),
        (b"c5", {"id": 5, "amount": 150.0}),
    ]
    told = capsys.readouterr().out
    assert "turnover: batch 0, 6 rows" in told  # the table itself is printed by the JVM
    assert "big: batch 0, 6 rows" in told
    assert "lag 0" in told
    assert "all queries have ended" in told


def test_the_example_in_toml_runs(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path
) -> None:
    shown = [
        {"impression": n, "page": f"/{n % 2}", "shown": f"2026-01-01T12:00:0{n}Z"} for n in range(6)
    ]
    clicked = [{"impression": n, "clicked": f"2026-01-01T12:0{n}:30Z"} for n in (1, 2, 5)]
    send(kafka_broker, "impressions", *shown)
    send(kafka_broker, "clicks", *clicked, {"impression": 3, "clicked": "2026-01-01T11:00:00Z"})
    path = example("clicks.toml", kafka_broker, tmp_path)
    assert run_job(str(path), threading.Event()) == 0
    joined = [
        json.loads(line)
        for file in (tmp_path / "clicks-joined").glob("*.json")
        for line in file.read_text().splitlines()
    ]
    assert sorted((row["page"], row["clicked"][:19]) for row in joined) == [
        ("/0", "2026-01-01T12:02:30"),
        ("/1", "2026-01-01T12:01:30"),
    ]
    assert values(kafka_broker, "page-counts") == [
        (b"/0", {"impressions": 3}),
        (b"/1", {"impressions": 3}),
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("query.q.sql = SELECT missing FROM orders", r"query.q.sql: [UNRESOLVED_COLUMN"),
        ("query.q.sql = SELEC 1", r"query.q.sql: "),
        ("query.q.sql = SELECT 1 AS value", "query.q.sql reads no topic"),
        ("view.v = SELECT x FROM nowhere", "view.v: [TABLE_OR_VIEW_NOT_FOUND]"),
        ("topic.orders.schema = id lung", "topic.orders.schema: not a schema such as"),
        ("topic.orders.schema = {", "topic.orders.schema: not valid JSON"),
        ('topic.orders.schema = {"type": "array"}', "topic.orders.schema, items: "),
        ("topic.missing.view = other", "topic 'missing' does not exist"),
        ("topic.orders.watermark = at 1 minute", "there is no column 'at'"),
        ("topic.orders.startingOffsets = soon", "topic.orders: "),
        ("query.q.sql = SELECT count(*) AS n FROM orders", "query.q.mode: "),
        ("query.q.sql = SELECT id AS key, 'x' AS value FROM orders", "key attribute unsupported"),
        ("brokers = 127.0.0.1:1", "brokers: "),
    ],
)
def test_what_is_wrong_is_told_before_anything_starts(
    spark: SparkSession,
    orders_broker: Broker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: str,
    words: str,
) -> None:
    settings = {
        "brokers": orders_broker.bootstrap_servers,
        "checkpoint": str(tmp_path / "checkpoint"),
        "kafka.bootstrap.timeout.ms": "500",
        "topic.orders.schema": "id long",
        "query.q.sql": "SELECT id FROM orders",
        "query.q.sink": "topic",
        "query.q.topic": "out",
    }
    key, value = change.split(" = ", 1)
    settings[key] = value
    path = tmp_path / "job.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    assert run_job(str(path), threading.Event()) == 2
    told = capsys.readouterr().err.splitlines()[-1]  # PySpark logs some errors before
    assert told.startswith(f"{path}: ")
    assert words in told
    assert not (tmp_path / "checkpoint").exists()


@pytest.fixture(scope="module")
def orders_broker() -> Iterator[Broker]:
    with Broker(config={"auto.create.topics.enable": "false"}) as broker:
        broker.create_topic("orders")
        yield broker


def test_a_job_runs_until_it_is_stopped_or_a_query_fails(
    spark: SparkSession,
    kafka_broker: Broker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    send(kafka_broker, "orders", {"id": 1}, {"id": 2})
    path = tmp_path / "job.toml"
    path.write_text(
        f"""
        brokers = "{kafka_broker.bootstrap_servers}"
        checkpoint = "{tmp_path}/checkpoint"
        topic.orders.schema = "id long"
        topic.orders.startingOffsets = "earliest"
        [query.copy]
        sql = "SELECT cast(id AS string) AS value FROM orders"
        sink = "topic"
        topic = "out"
        """
    )
    stop = StopAfter(lambda: len(read_all(kafka_broker.bootstrap_servers, "out")) == 2)
    assert run_job(path.as_uri(), stop, every_seconds=0.2) == 0
    assert "stopped" in capsys.readouterr().out
    path.write_text(
        path.read_text().replace("cast(id AS string)", "cast(raise_error('no luck') AS string)")
    )
    send(kafka_broker, "orders", {"id": 3})
    assert run_job(str(path), threading.Event()) == 1
    assert "copy failed: " in capsys.readouterr().out
    assert not spark.streams.active


class StopAfter(threading.Event):
    """Asks the job to stop once a condition holds."""

    def __init__(self, condition: Callable[[], bool]) -> None:
        super().__init__()
        self._condition = condition

    def wait(self, timeout: float | None = None) -> bool:
        super().wait(timeout)
        return self._condition()
