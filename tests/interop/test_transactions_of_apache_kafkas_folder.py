"""Transactions that Apache Kafka had open when it was killed: our broker takes them over."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_stub import Broker
from tests.integration.broker_stub.raw_client import RawClient
from tests.interop.apache_kafka import ApacheKafka
from tests.support.broker_load import create_topic
from tests.support.transaction_script import OLD, Producer, TransactionScript

SECONDS = 30
IDS = ("committed", "aborted", "timed-out", "fenced")


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline


def begin(apache: ApacheKafka, name: str) -> Producer:
    """Open a transaction with a record and an offset."""
    create_topic(apache.bootstrap_servers, name, 1)
    with RawClient(apache.port) as client:
        script = TransactionScript(client.ask, name, name)
        wait_until(lambda: script.find() == 0)
        wait_until(lambda: script.find(key_type=0, key=name) == 0)
        timeout_ms = 1000 if name == "timed-out" else 60_000
        while (producer := script.init(timeout_ms=timeout_ms)).error:
            assert producer.error in (14, 15, 16)
        wait_until(lambda: not script.fetch().error_code)
        is_old = name == "aborted"
        if is_old:
            assert script.add(producer, 0) == 0
        assert script.produce(producer, b"before", version=OLD if is_old else 12) == 0
        wait_until(lambda: script.commit_offsets(producer, {0: 5}, group=name) == 0)
        return producer


@pytest.mark.usefixtures("kafka_jars")
def test_open_transactions_end_as_their_producers_want(tmp_path: Path):
    apache = ApacheKafka(tmp_path, {})
    apache.start()
    try:
        producers = {name: begin(apache, name) for name in IDS}
    finally:
        apache.kill()

    config = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}
    with (
        Broker(data_dir=tmp_path / "data", config=config) as broker,
        RawClient(broker.port) as client,
    ):
        scripts = {name: TransactionScript(client.ask, name, name) for name in IDS}
        for name in ("committed", "aborted", "fenced"):
            assert scripts[name].describe()["state"] == "Ongoing"
            assert scripts[name].read() == []
            assert scripts[name].committed(0, group=name) == {0: (-1, 88)}
        assert scripts["committed"].end(producers["committed"]).error == 0
        aborted = scripts["aborted"].end(producers["aborted"], commit=False, version=4)
        assert aborted.error == 0
        scripts["fenced"].started()
        wait_until(lambda: scripts["timed-out"].describe()["state"] == "CompleteAbort")
        for name, script in scripts.items():
            assert script.read() == ([b"before"] if name == "committed" else [])
            assert script.end_offset() == script.end_offset(committed_only=False) == 2
            expected = 5 if name == "committed" else -1
            assert script.committed(0, group=name) == {0: (expected, 0)}
        assert scripts["fenced"].end(producers["fenced"]).error == 90
