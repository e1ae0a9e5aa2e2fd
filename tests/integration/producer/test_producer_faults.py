"""The broker fails, hangs up, dies and comes back: each acked record is there once, in order."""

import threading

import pytest

from broker_stub.testing.when import Randomly
from pyclient.clock import SystemClock
from pyclient.error_codes import (
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    UnknownServerError,
)
from pyclient.errors import KafkaError
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.timers import Deadline


def send_all(producer, count, partitions=1):
    """Send numbered records; the futures by partition, in order."""
    futures = [[] for _ in range(partitions)]
    for number in range(count):
        partition = number % partitions
        future = producer.send("orders", b"%d" % number, partition=partition)
        futures[partition].append((b"%d" % number, future))
        if number % 50 == 49:
            producer._core.accumulator.seal_all()  # many batches, so that there is order to lose
    producer.flush(timeout=60)
    return futures


def check_delivery(written, futures):
    """Acked records are where they were said to be, once, in the order of sending."""
    for partition, sent in enumerate(futures):
        records = written("orders", partition)
        values = [record.value for record in records]
        assert len(set(values)) == len(values), "a record was written twice"
        order = [int(value) for value in values]
        assert order == sorted(order), "records were written out of order"
        by_offset = {record.offset: record.value for record in records}
        for value, future in sent:
            if future.succeeded():
                assert by_offset[future.get(0).offset] == value
            assert future.is_done


@pytest.fixture
def orders(kafka_broker):
    kafka_broker.create_topic("orders", partitions=3)


def test_send_retries_after_a_leader_error_and_refreshes_metadata(
    kafka_broker, orders, new_producer
):
    producer = new_producer()
    producer.send("orders", b"v", partition=0).get(10)
    asked = kafka_broker.requests.count(MetadataRequest)
    kafka_broker.faults.fail_next(ProduceRequest, NotLeaderOrFollowerError)
    assert producer.send("orders", b"w", partition=0).get(10).offset == 1
    deadline = Deadline(SystemClock(), 10_000)  # the retry may overtake the refresh
    while kafka_broker.requests.count(MetadataRequest) == asked:
        assert not deadline.expired, "the metadata was not refreshed"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "error",
    [NotLeaderOrFollowerError, NotEnoughReplicasError, NotEnoughReplicasAfterAppendError],
)
def test_a_third_of_the_requests_fail(kafka_broker, orders, new_producer, written, error, after):
    producer = new_producer(retry_backoff_ms=5)
    kafka_broker.faults.fail_randomly(ProduceRequest, error, 0.3, seed=7, after=after)
    futures = send_all(producer, 1500, partitions=3)
    assert all(future.succeeded() for sent in futures for _, future in sent)
    check_delivery(written, futures)


@pytest.mark.parametrize("after", [False, True])
def test_the_broker_hangs_up_now_and_then(kafka_broker, orders, new_producer, written, after):
    producer = new_producer(retry_backoff_ms=5, reconnect_backoff_ms=5)
    kafka_broker.faults.drop(ProduceRequest, Randomly(0.2, seed=3), after=after)
    futures = send_all(producer, 1500, partitions=3)
    assert all(future.succeeded() for sent in futures for _, future in sent)
    check_delivery(written, futures)


def test_answers_are_cut_off(kafka_broker, orders, new_producer, written):
    producer = new_producer(retry_backoff_ms=5, reconnect_backoff_ms=5)
    kafka_broker.faults.cut(ProduceRequest, 10, Randomly(0.2, seed=5))
    futures = send_all(producer, 1000, partitions=3)
    assert all(future.succeeded() for sent in futures for _, future in sent)
    check_delivery(written, futures)


def test_errors_that_do_not_pass_fail_some_records_and_leave_the_rest_in_order(
    kafka_broker, orders, new_producer, written
):
    producer = new_producer(retry_backoff_ms=5)
    kafka_broker.faults.fail_randomly(ProduceRequest, UnknownServerError, 0.2, seed=11)
    futures = send_all(producer, 1500, partitions=3)
    outcomes = {future.succeeded() for sent in futures for _, future in sent}
    assert outcomes == {True, False}
    check_delivery(written, futures)
    assert producer._core.pool.available == producer._core.pool.total


def test_records_that_run_out_of_time_on_the_wire_leave_order_and_memory_intact(
    kafka_broker, orders, new_producer, written
):
    producer = new_producer(
        request_timeout_ms=150, delivery_timeout_ms=200, linger_ms=0, retry_backoff_ms=5
    )
    producer.send("orders", b"-1", partition=0).get(10)
    kafka_broker.faults.delay(ProduceRequest, 400, Randomly(0.3, seed=2))
    futures = send_all(producer, 600, partitions=3)
    kafka_broker.faults.clear()
    futures[0].append((b"600", producer.send("orders", b"600", partition=0)))
    producer.flush(timeout=20)
    outcomes = {future.succeeded() for sent in futures for _, future in sent}
    assert outcomes == {True, False}
    check_delivery(written, futures)
    producer.close(timeout=10)
    assert producer._core.pool.available == producer._core.pool.total


def restart(broker):
    """A clean stop, and a start with the same data."""
    broker.restart()


def crash(broker):
    """The power goes, and comes back."""
    broker.kill()
    broker.start()


@pytest.mark.parametrize("go_down", [restart, crash])
def test_the_broker_goes_down_under_load_and_comes_back_on_the_same_port(
    kafka_broker, orders, new_producer, written, go_down
):
    producer = new_producer(
        linger_ms=1, retry_backoff_ms=10, reconnect_backoff_ms=10, buffer_memory=1_000_000
    )
    producer.send("orders", b"-1", partition=0).get(10)
    enough = threading.Event()
    acked = []
    futures = [[], [], []]
    done = threading.Event()

    def send():
        number = 0
        while not done.is_set():
            partition = number % 3
            future = producer.send("orders", b"%d" % number, partition=partition)
            future.add_callback(lambda metadata: (acked.append(metadata), enough.set()))
            futures[partition].append((b"%d" % number, future))
            number += 1

    thread = threading.Thread(target=send)
    thread.start()
    try:
        for _ in range(3):
            enough.clear()
            assert enough.wait(20)
            go_down(kafka_broker)
    finally:
        enough.clear()
        assert enough.wait(20)
        done.set()
        thread.join(20)
    producer.flush(timeout=60)
    assert all(future.succeeded() for sent in futures for _, future in sent)
    check_delivery(written, futures)


def test_a_broker_that_stays_away_fails_records_in_time_with_the_reason(
    kafka_broker, orders, new_producer
):
    producer = new_producer(request_timeout_ms=200, delivery_timeout_ms=500, linger_ms=0)
    producer.send("orders", b"v", partition=0).get(10)
    kafka_broker.stop()
    future = producer.send("orders", b"w", partition=0)
    with pytest.raises(KafkaError, match=r"delivery\.timeout\.ms"):
        future.get(10)
    assert producer._core.pool.available == producer._core.pool.total
