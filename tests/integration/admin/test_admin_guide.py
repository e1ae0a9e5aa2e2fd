"""The example of docs/admin.md runs as it stands, and its table has every call."""

import re
from pathlib import Path

import pytest

from broker_stub import Broker
from pyclient import KafkaAdminClient

GUIDE = (Path(__file__).parents[3] / "docs" / "admin.md").read_text(encoding="utf-8")


def test_the_guides_example_runs(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    exec(source.replace("localhost:9092", kafka_broker.bootstrap_servers), {})
    assert capsys.readouterr().out.splitlines() == [
        "cleanup.policy delete,compact DYNAMIC_TOPIC_CONFIG",
        "retention.ms 60000 DYNAMIC_TOPIC_CONFIG",
        "0",
        "True",
    ]


def test_the_guide_says_where_every_call_goes() -> None:
    calls = {name for name in dir(KafkaAdminClient) if not name.startswith("_")} - {"close"}
    assert calls == set(re.findall(r"`(\w+)`", GUIDE.split("| calls |")[1].split("\n\n")[0]))
