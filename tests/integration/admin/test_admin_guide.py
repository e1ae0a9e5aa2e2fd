"""The examples of docs/admin.md run as they stand, and its table has every call.

The example that needs Apache Kafka runs in tests/interop.
"""

import re

import pytest

from broker_stub import Broker
from pyclient import KafkaAdminClient, KafkaProducer
from tests.support.admin_guide import GUIDE, run_example


def test_the_guides_example_runs(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    run_example("Managing a cluster", kafka_broker.bootstrap_servers)
    assert capsys.readouterr().out.splitlines() == [
        "cleanup.policy delete,compact DYNAMIC_TOPIC_CONFIG",
        "retention.ms 60000 DYNAMIC_TOPIC_CONFIG",
        "0",
        "True",
    ]


def test_the_guides_example_of_groups_runs(
    kafka_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = kafka_broker.bootstrap_servers
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics({"orders": {"num_partitions": 1}})
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for _ in range(100):
            producer.send("orders", b"x", timestamp_ms=1_000)
    run_example("Groups", servers)
    assert capsys.readouterr().out.splitlines() == [
        "orders 0 40 100 60",
        "True",
        "0",
        "90",  # ten before the end: no record is younger than an hour
        "{'billing': 'OK'}",
    ]


def test_the_guide_says_where_every_call_goes() -> None:
    calls = {name for name in dir(KafkaAdminClient) if name[0].islower()} - {"close"}
    assert calls == set(re.findall(r"`(\w+)`", GUIDE.split("| calls |")[1].split("\n\n")[0]))
