"""`pyclient transactions` against the broker."""

from collections.abc import Iterator

import pytest

from broker_stub import Broker
from pyclient import KafkaProducer
from tests.support.command_line import Shell


@pytest.fixture
def open_transaction(shell: Shell, kafka_broker: Broker) -> Iterator[KafkaProducer]:
    """A transaction of `till-1` that began at offset 0 of orders."""
    shell("topics", "create", "orders", "-p", "1")
    with KafkaProducer(
        bootstrap_servers=kafka_broker.bootstrap_servers, transactional_id="till-1"
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"espresso").get(timeout=30)
        yield producer


def test_transactions_are_listed_by_state(shell: Shell, open_transaction: KafkaProducer) -> None:
    (listed,) = shell("transactions", "list", "--state", "ongoing", "--json").json
    assert (listed["id"], listed["state"]) == ("till-1", "Ongoing")
    open_transaction.commit_transaction()
    empty = shell("transactions", "list", "--state", "ongoing")
    assert empty.err == "There are no such transactions.\n"
    wrong = shell("transactions", "list", "--state", "busy")
    assert wrong.code == 2
    assert "knows no such transaction states: busy" in wrong.err
    assert shell("transactions", "list", "--longer-than", "1h", "--json").json == []


def test_a_transaction_is_described(shell: Shell, open_transaction: KafkaProducer) -> None:
    described = shell("transactions", "describe", "till-1", "--json").json
    assert described["state"] == "Ongoing"
    assert described["partitions"] == [{"topic": "orders", "partition": 0}]
    shown = shell("transactions", "describe", "till-1").out
    assert "Timeout      1 m\n" in shown
    assert "Partitions   orders:0\n" in shown
    unknown = shell("transactions", "describe", "nope")
    assert unknown.code == 4
    assert "Hint: `pyclient transactions list`" in unknown.err


def test_an_open_transaction_is_found_and_aborted(
    shell: Shell, open_transaction: KafkaProducer
) -> None:
    (producer,) = shell("transactions", "producers", "orders:0", "--json").json
    assert producer["open_since_offset"] == 0
    assert shell("transactions", "find-hanging").err == "No transaction hangs.\n"
    absent = shell("transactions", "abort", "orders:0", "--start-offset", "7")
    assert absent.code == 4
    assert "no open transaction of orders:0 begins at 7" in absent.err
    done = shell("transactions", "abort", "orders:0", "--start-offset", "0", "--json")
    assert done.json["aborted"]
    (producer,) = shell("transactions", "producers", "orders:0", "--json").json
    assert producer["open_since_offset"] is None
    assert shell("transactions", "abort", "orders", "--start-offset", "0").code == 2
