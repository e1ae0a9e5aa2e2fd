"""What a mistake raises in kafka-python, it raises here: `except` clauses go on working."""

import builtins
from collections.abc import Callable
from typing import Any

import kafka
import pytest

import pyclient
import pyclient.errors
from broker_stub import Broker

Mistake = Callable[[Any, dict[str, Any]], object]


def in_send(*arguments: object, **named: object) -> Mistake:
    """A wrong call of `send`."""

    def make(package: Any, settings: dict[str, Any]) -> object:
        producer = package.KafkaProducer(**settings)
        try:
            return producer.send(*arguments, **named).get(timeout=10)
        finally:
            producer.close()

    return make


def in_options(**options: object) -> Mistake:
    """A wrong option."""
    return lambda package, settings: package.KafkaProducer(**settings, **options)


def after_close(package: Any, settings: dict[str, Any]) -> object:
    producer = package.KafkaProducer(**settings)
    producer.close()
    return producer.send("orders", b"v")


def closing_in_the_past(package: Any, settings: dict[str, Any]) -> object:
    producer = package.KafkaProducer(**settings)
    try:
        return producer.close(timeout=-1)
    finally:
        producer.close()


def without_a_broker(package: Any, settings: dict[str, Any]) -> object:
    nowhere = {**settings, "bootstrap_servers": "127.0.0.1:1", "api_version": (3, 9)}
    producer = package.KafkaProducer(**nowhere, max_block_ms=100)
    try:
        return producer.send("orders", b"v")
    finally:
        producer.close(timeout=0)


MISTAKES: dict[str, Mistake] = {
    "neither key nor value": in_send("orders"),
    "text as a value": in_send("orders", "text"),
    "text as a key": in_send("orders", b"v", key="text"),
    "headers that are a dictionary": in_send("orders", b"v", headers={"a": b"b"}),
    "headers that are text": in_send("orders", b"v", headers=[("a", "b")]),
    "a negative partition": in_send("orders", b"v", partition=-1),
    "a partition that there is not": in_send("orders", b"v", partition=99),
    "too large a record": in_send("orders", b"x" * 2_000_000),
    "an unknown option": in_options(lingr_ms=5),
    "an unknown codec": in_options(compression_type="rar"),
    "idempotence without all acks": in_options(enable_idempotence=True, acks=1),
    "idempotence without retries": in_options(enable_idempotence=True, retries=0),
    "too short a delivery": in_options(delivery_timeout_ms=1),
    "sending after close": after_close,
    "a negative timeout": closing_in_the_past,
    "no metadata": without_a_broker,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises_what_kafka_python_raises(kafka_broker: Broker, mistake: str) -> None:
    kafka_broker.create_topic("orders", partitions=1)
    settings = {"bootstrap_servers": kafka_broker.bootstrap_servers}
    with pytest.raises(Exception) as theirs:  # noqa: PT011  which one is the question
        MISTAKES[mistake](kafka, settings)
    name = theirs.type.__name__
    expected = getattr(pyclient.errors, name, None) or getattr(builtins, name)
    with pytest.raises(expected):
        MISTAKES[mistake](pyclient, settings)
