"""The README's examples run as they stand."""

import re
from typing import Any

import pytest

from broker_stub import Broker
from tests.support.readme import README, example


def test_the_application_runs(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    exec(example("In an application", kafka_broker.bootstrap_servers), {})
    assert capsys.readouterr().out == "b'table 7' b'one espresso'\n"


def test_the_test_passes(kafka_broker: Broker) -> None:
    namespace: dict[str, Any] = {}
    exec(example("In a test", kafka_broker.bootstrap_servers), namespace)
    namespace["test_an_order_is_published"](kafka_broker)


def test_every_file_it_links_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
