"""A producing client in a process of its own: `python -m tests.support.producer_load CLIENT`.

Reads one job a line from its input, as JSON, and answers each with a line: what it took. So the
clients that a benchmark compares share neither an interpreter nor its lock, and each is warm when
its turn comes. Every client is used as its users do, and asked for the same guarantees: acks=all
and idempotence, and an outcome for every record (futures, or delivery callbacks with polling).
"""

import json
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

POLL_EVERY = 500
TIMEOUT_SECONDS = 120
WARM_UP = 10_000
DISTINCT = 2_000
WORDS = 400


class Job(NamedTuple):
    """What to send: the number and size of records, and the options that the comparison sets."""

    bootstrap: str
    topic: str
    count: int  # type: ignore[assignment]  # tuples have a method of this name
    size: int
    options: dict[str, Any]
    keyed: bool = False
    rate: int = 0  # records a second; 0 is as fast as it goes
    columns: bool = False  # whole Arrow columns


class Payload(NamedTuple):
    """Records, made before the clock runs."""

    values: list[bytes]
    keys: list[bytes] | None


Client = Callable[[Job, Payload, Payload], dict[str, float]]


def payload(count: int, size: int, keyed: bool) -> Payload:
    """Text of words, which compresses about as log lines do, and keys of 16 bytes."""
    rng = random.Random(7)
    words = [bytes(rng.choices(range(97, 123), k=rng.randint(3, 9))) for _ in range(WORDS)]
    distinct = []
    for number in range(min(count, DISTINCT)):
        line = b"%d " % number
        while len(line) < size:
            line += rng.choice(words) + b" %d " % rng.randrange(1000)
        distinct.append(line[:size])
    values = (distinct * (count // len(distinct) + 1))[:count]
    keys = [b"key-%012d" % rng.randrange(10**6) for _ in range(count)] if keyed else None
    return Payload(values, keys)


class Watch:
    """Wall time and this process's CPU, from its making on."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def stop(self, count: int) -> dict[str, float]:
        """What `count` records took."""
        seconds = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        return {"rate": count / seconds, "cpu_us": cpu / count * 1e6}


def ours(job: Job, warm_up: Payload, load: Payload) -> dict[str, float]:
    from pyclient import KafkaProducer

    with KafkaProducer(bootstrap_servers=job.bootstrap, **job.options) as producer:
        _send_all(producer, job, warm_up)
        if job.rate:
            return _paced(
                job,
                load.values,
                lambda value, done: producer.send(job.topic, value).add_callback(lambda _: done()),
                lambda: producer.flush(TIMEOUT_SECONDS),
            )
        if job.columns:
            taken = _send_columns(producer, job, load)
        else:
            watch = Watch()
            _send_all(producer, job, load)
            taken = watch.stop(job.count)
        figures = producer.metrics()["producer-metrics"]
        sent = figures["record-send-total"]
        assert sent == job.count + len(warm_up.values), "records were lost or sent twice"
        assert figures["record-error-total"] == 0
    return {**taken, "batch": figures["batch-size-avg"]}


def _send_columns(producer: Any, job: Job, load: Payload) -> dict[str, float]:
    import pyarrow

    step = 10_000
    tables = [
        pyarrow.table({"value": pyarrow.array(load.values[start : start + step], pyarrow.binary())})
        for start in range(0, job.count, step)
    ]
    watch = Watch()
    for table in tables:
        producer.send_arrow(job.topic, table)
    producer.flush(TIMEOUT_SECONDS)
    return watch.stop(job.count)


def kafka_python(job: Job, warm_up: Payload, load: Payload) -> dict[str, float]:
    """kafka-python, whose names are ours."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=job.bootstrap, **job.options)
    try:
        _send_all(producer, job, warm_up)
        watch = Watch()
        last = _send_all(producer, job, load)
        taken = watch.stop(job.count)
        assert last.succeeded()
    finally:
        producer.close()
    return taken


def _send_all(producer: Any, job: Job, load: Payload) -> Any:
    """Send records, take the future of each, and wait until they are acknowledged."""
    send, topic = producer.send, job.topic
    future = None
    if load.keys is None:
        for value in load.values:
            future = send(topic, value)
    else:
        for value, key in zip(load.values, load.keys, strict=True):
            future = send(topic, value, key)
    producer.flush(TIMEOUT_SECONDS)
    return future


def confluent(job: Job, warm_up: Payload, load: Payload) -> dict[str, float]:
    from confluent_kafka import Producer

    config = {"bootstrap.servers": job.bootstrap, "acks": "all", "enable.idempotence": True}
    producer = Producer({**config, **job.options})
    if job.rate:
        _produce_all(producer, job.topic, warm_up)
        return _polled(producer, job, load)
    _produce_all(producer, job.topic, warm_up)
    watch = Watch()
    failed = _produce_all(producer, job.topic, load)
    taken = watch.stop(job.count)
    assert failed == 0, "records were lost"
    return taken


def _produce_all(producer: Any, topic: str, load: Payload) -> int:
    """Produce with a delivery callback each, polling now and then; how many records failed."""
    failures = 0
    produce, poll = producer.produce, producer.poll

    def on_delivery(error: object, _message: object) -> None:
        nonlocal failures
        if error is not None:
            failures += 1

    keys: list[Any] = load.keys or [None] * len(load.values)
    left = POLL_EVERY
    for value, key in zip(load.values, keys, strict=True):
        try:
            produce(topic, value, key, on_delivery=on_delivery)
        except BufferError:
            while True:  # its queue is full: serve callbacks until there is room
                poll(0.01)
                try:
                    produce(topic, value, key, on_delivery=on_delivery)
                    break
                except BufferError:
                    continue
        left -= 1
        if not left:
            poll(0)
            left = POLL_EVERY
    assert producer.flush(TIMEOUT_SECONDS) == 0, "records were not acknowledged"
    return failures


def _polled(producer: Any, job: Job, load: Payload) -> dict[str, float]:
    """Paced, with a thread that polls, as programs do that care for prompt callbacks."""
    running = True

    def poll() -> None:
        while running:
            producer.poll(0.1)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        return _paced(
            job,
            load.values,
            lambda value, done: producer.produce(job.topic, value, on_delivery=lambda *_: done()),
            lambda: producer.flush(TIMEOUT_SECONDS),
        )
    finally:
        running = False
        thread.join()


def _paced(
    job: Job,
    values: list[bytes],
    send: Callable[[bytes, Callable[[], None]], object],
    flush: Callable[[], object],
) -> dict[str, float]:
    """Send at a steady rate, and measure from each send to its acknowledgement."""
    latencies: list[float] = []
    now = time.perf_counter
    gap = 1 / job.rate
    watch = Watch()
    due = now()
    for value in values:
        wait = due - now()
        if wait > 0:
            time.sleep(wait)
        sent = now()
        send(value, lambda sent=sent: latencies.append(now() - sent))  # type: ignore[misc]
        due += gap
    flush()
    taken = watch.stop(job.count)
    assert len(latencies) == job.count, "records were not acknowledged"
    percentiles = statistics.quantiles(latencies, n=100)
    return {**taken, "p50_ms": percentiles[49] * 1e3, "p99_ms": percentiles[98] * 1e3}


CLIENTS: dict[str, Client] = {"ours": ours, "confluent": confluent, "kafka-python": kafka_python}


def main() -> None:
    """Run the jobs from standard input."""
    client = CLIENTS[sys.argv[1]]
    prepared = cache(payload)
    for line in sys.stdin:
        job = Job(**json.loads(line))
        load = prepared(job.count, job.size, job.keyed)
        warm_up = prepared(min(job.count, WARM_UP), job.size, job.keyed)
        print(json.dumps(client(job, warm_up, load)), flush=True)


if __name__ == "__main__":
    main()
