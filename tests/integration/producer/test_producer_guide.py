"""The examples of docs/producer.md run as they stand, and name figures and options that exist."""

import re
from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
from pyclient import KafkaProducer
from pyclient.config.producer import DEFINITION

GUIDE = (Path(__file__).parents[3] / "docs" / "producer.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(kafka_broker: Broker, number: int) -> None:
    namespace: dict[str, Any] = {}
    exec(EXAMPLES[number].replace("localhost:9092", kafka_broker.bootstrap_servers), namespace)


def test_every_figure_it_names_is_there(kafka_broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        figures = producer.metrics()["producer-metrics"]
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", GUIDE.split("## Metrics")[1]))
    assert named <= figures.keys()


def test_every_option_it_names_is_there() -> None:
    options = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)(?:=[^`]*)?`", GUIDE))
    calls = {"on_send", "on_acknowledgement", "send_arrow", "allow_null"}
    columns = {"timestamp_ms"}
    assert [one for one in options - calls - columns if not DEFINITION.knows(one)] == []
