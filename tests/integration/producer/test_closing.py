"""Flushing and closing a producer that is shared, blocked or interrupted."""

import threading

import pytest

from pyclient import ProducerInterceptor
from pyclient.errors import Cancelled, IllegalStateError, KafkaTimeoutError
from pyclient.producer.batch_result import BatchResult
from pyclient.protocol.messages.produce import ProduceRequest


class Witness(ProducerInterceptor):
    """Notes what it is told, in order."""

    def __init__(self):
        self.events = []

    def on_acknowledgement(self, metadata, exception):
        self.events.append("acknowledged" if exception is None else type(exception).__name__)

    def close(self):
        self.events.append("closed")


def close_together(producer, timeouts):
    """Close from as many threads at once; returns when all have returned."""
    barrier = threading.Barrier(len(timeouts))

    def close(timeout):
        barrier.wait(10)
        producer.close(timeout)

    threads = [threading.Thread(target=close, args=(timeout,)) for timeout in timeouts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_several_threads_that_close_all_wait_for_what_is_on_its_way(kafka_broker, new_producer):
    witness = Witness()
    producer = new_producer(interceptors=[witness])
    producer.send("orders", b"first").get(10)
    kafka_broker.faults.delay(ProduceRequest, 200)
    futures = [producer.send("orders", b"v") for _ in range(10)]
    close_together(producer, [20] * 4)
    assert all(future.succeeded() for future in futures)
    assert witness.events == ["acknowledged"] * 11 + ["closed"]


def test_a_close_with_a_timeout_of_zero_ends_all_concurrent_closes(kafka_broker, new_producer):
    witness = Witness()
    producer = new_producer(interceptors=[witness])
    producer.send("orders", b"first").get(10)
    kafka_broker.faults.delay(ProduceRequest, 600_000)
    future = producer.send("orders", b"v")
    close_together(producer, [None, 0])
    with pytest.raises(Cancelled):
        future.get(0)
    assert witness.events == ["acknowledged", "Cancelled", "closed"]


def test_a_close_that_was_interrupted_can_be_called_again(new_producer, monkeypatch):
    before = set(threading.enumerate())
    producer = new_producer(linger_ms=60_000)
    future = producer.send("orders", b"v")

    def interrupt(result, deadline):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(BatchResult, "wait_finished", interrupt)
        with pytest.raises(KeyboardInterrupt):
            producer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        producer.send("orders", b"w")
    producer.close(timeout=10)
    assert future.succeeded()
    assert set(threading.enumerate()) <= before


def test_flush_tells_a_slow_callback_from_a_slow_broker(new_producer):
    producer = new_producer()
    begun, go_on = threading.Event(), threading.Event()
    future = producer.send("orders", b"v")
    future.add_callback(lambda _: (begun.set(), go_on.wait(10)))
    assert begun.wait(10)
    with pytest.raises(KafkaTimeoutError, match=r"callbacks .* still running after 0\.0 s"):
        producer.flush(timeout=0)
    go_on.set()
    producer.flush(timeout=10)


def test_a_timeout_that_is_refused_closes_nothing(new_producer):
    producer = new_producer()
    with pytest.raises(ValueError, match="negative"):
        producer.close(timeout=-1)
    assert producer.send("orders", b"v").get(10).offset == 0
    producer.close(timeout=10)
    with pytest.raises(IllegalStateError, match="closed"):
        producer.send("orders", b"w")
