"""What the producer logs: levels that mean something, nothing per record, nothing under a lock."""

import logging

import pytest

from pyclient.error_codes import ClusterAuthorizationError
from pyclient.errors import NotLeaderOrFollowerError, TopicAuthorizationError
from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pyclient.protocol.messages.produce import ProduceRequest


def logged(caplog, text):
    """The level that a line with this text was logged at."""
    (level,) = {record.levelno for record in caplog.records if text in record.getMessage()}
    return level


@pytest.fixture(autouse=True)
def all_levels(caplog):
    caplog.set_level(logging.DEBUG)


def test_a_retry_is_worth_knowing(log, new_producer, caplog):
    log.script.append(NotLeaderOrFollowerError.code)
    new_producer().send("orders", b"v").get(5)
    assert logged(caplog, "is sent again") == logging.INFO


def test_a_split_is_worth_knowing(log, new_producer, caplog):
    log.batch_bytes_max = 500
    producer = new_producer()
    for _ in range(10):
        producer.send("orders", b"x" * 100, partition=0)
    producer.flush()
    assert logged(caplog, "too large for the broker") == logging.INFO


def test_a_failure_is_a_warning_with_its_cause(log, new_producer, caplog):
    log.script.append(TopicAuthorizationError.code)
    producer = new_producer()
    producer.send("orders", b"v", partition=0)
    producer.flush()
    assert logged(caplog, "1 records for orders-0 failed") == logging.WARNING


def test_what_a_hasty_close_leaves_behind_is_a_warning(network, log, new_producer, caplog):
    producer = new_producer()
    producer.send("orders", b"v").get(5)
    network.brokers[1].on(ProduceRequest, None)
    producer.send("orders", b"v")
    producer.close(timeout=0.1)
    assert logged(caplog, "closing with 1 unacknowledged batches") == logging.WARNING


def test_what_ends_the_producer_is_an_error(network, log, new_producer, caplog):
    refusal = InitProducerIdResponse(error_code=ClusterAuthorizationError.code)
    network.brokers[1].on(InitProducerIdRequest, refusal)
    producer = new_producer()
    producer.send("orders", b"v")
    producer.flush()
    assert logged(caplog, "refuse a producer id") == logging.ERROR


def test_a_calm_run_logs_as_much_for_a_thousand_records_as_for_one(log, new_producer, caplog):
    counts = []
    for records in (1, 1_000):
        caplog.clear()
        producer = new_producer()
        for _ in range(records):
            producer.send("orders", b"v" * 100, partition=0)
        producer.close()
        counts.append(len(caplog.records))
    assert counts[0] == counts[1]


def test_nothing_is_logged_while_a_lock_is_held(log, new_producer):
    held = []

    class Watcher(logging.Handler):
        def emit(self, record):
            core = producer._core
            if core.accumulator._lock._is_owned() or core.pool._lock._is_owned():
                held.append(record.getMessage())

    producer = new_producer(retry_backoff_ms=1, max_block_ms=100)
    watcher = Watcher()
    logging.getLogger("pyclient").addHandler(watcher)
    try:
        log.batch_bytes_max = 2_000
        log.script.extend(
            (NotLeaderOrFollowerError.code, DISCONNECT, log.lost, TopicAuthorizationError.code)
        )
        for _ in range(100):
            producer.send("orders", b"v" * 100, partition=0)
        producer.close()
    finally:
        logging.getLogger("pyclient").removeHandler(watcher)
    assert held == []
