"""The examples of docs/consumer.md run as they stand, and name options that exist."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
from pyclient import KafkaProducer
from pyclient.config.consumer import DEFINITION
from pyclient.consumer.rebalance_listener import ConsumerRebalanceListener

GUIDE = (Path(__file__).parents[3] / "docs" / "consumer.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
DRINKS = (b"espresso", b"latte", b"espresso")
COUNT = 12


@pytest.fixture
def orders(kafka_broker: Broker) -> Broker:
    """A broker with twelve orders in three partitions."""
    kafka_broker.create_topic("orders", partitions=3)
    with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        for number in range(COUNT):
            producer.send("orders", DRINKS[number % 3], partition=number % 3)
    return kafka_broker


def run(broker: Broker, example: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(example.replace("localhost:9092", broker.bootstrap_servers), namespace)
    return namespace


def the_example_with(text: str) -> str:
    (found,) = (example for example in EXAMPLES if text in example)
    return found


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(orders: Broker, number: int) -> None:
    run(orders, EXAMPLES[number])


def test_the_loop_prints_every_record(orders: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    run(orders, EXAMPLES[0])
    assert len(capsys.readouterr().out.splitlines()) == COUNT


@pytest.mark.parametrize("name", ["done", "seen"])
def test_the_recipes_get_every_record_once(orders: Broker, name: str) -> None:
    values = run(orders, the_example_with(f"{name} = []"))[name]
    assert Counter(values) == {b"espresso": 8, b"latte": 4}


def test_the_recipe_for_exactly_once_goes_on_with_the_stored_offsets(orders: Broker) -> None:
    example = the_example_with("import sqlite3")
    results = run(orders, example)["results"]
    # The same program once more, over what it has stored: nothing is counted twice.
    again = re.sub(r"results = sqlite3.*?\n\"\"\"\)\n", "", example, flags=re.DOTALL)
    namespace = {"results": results}
    exec(again.replace("localhost:9092", orders.bootstrap_servers), namespace)
    drinks = dict(results.execute("SELECT name, count FROM drinks").fetchall())
    assert drinks == {"espresso": 8, "latte": 4}


def test_every_option_it_names_is_there() -> None:
    options = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)(?:=[^`]*)?`", GUIDE))
    calls = {name for name in vars(ConsumerRebalanceListener) if name.startswith("on_")}
    calls |= {"poll_arrow", "timeout_ms", "on_consume", "divergent_offsets"}
    assert all(DEFINITION.knows(option) for option in options - calls)


def test_the_recipe_for_poison_goes_past_every_record(orders: Broker) -> None:
    poison = run(orders, the_example_with("poison = []"))["poison"]
    assert len({(partition, offset) for partition, offset, _ in poison}) == COUNT
    assert Counter(value for *_, value in poison) == {b"espresso": 8, b"latte": 4}
