"""The examples of docs/transactions.md run as they stand, in order, on our broker."""

import re
from pathlib import Path
from typing import Any

from broker_stub import Broker
from pyclient import KafkaConsumer, KafkaProducer

GUIDE = (Path(__file__).parents[3] / "docs" / "transactions.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def committed(servers: str, topic: str) -> list[bytes | None]:
    """What a committed reader sees of a topic, to its end."""
    with KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=300,
    ) as consumer:
        return [record.value for record in consumer]


def test_the_examples_run_one_after_another(kafka_broker: Broker) -> None:
    servers = kafka_broker.bootstrap_servers
    names: dict[str, Any] = {"SERVERS": servers}
    for topic in ("orders", "payments", "receipts"):
        kafka_broker.create_topic(topic, 1)
    for example in EXAMPLES:
        exec(example.replace("5_000", "300"), names)
    assert names["values"] == [b"espresso"]
    assert committed(servers, "payments") == [b"2.80"]
    assert committed(servers, "orders") == [b"espresso", b"lungo"]
    with (
        KafkaConsumer(
            "orders",
            bootstrap_servers=servers,
            group_id="receipts",
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
        KafkaProducer(bootstrap_servers=servers, transactional_id="receipts") as producer,
    ):
        producer.init_transactions()
        while len(committed(servers, "receipts")) < 2:
            names["copy_some"](consumer, producer)
    assert committed(servers, "receipts") == [b"ESPRESSO", b"LUNGO"]


def test_every_section_is_short_of_surprises() -> None:
    named = set(re.findall(r"`(\w+Error)`", GUIDE))
    from pyclient import errors

    assert all(hasattr(errors, name) for name in named)
