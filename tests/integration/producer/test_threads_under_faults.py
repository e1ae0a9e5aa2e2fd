"""Eight threads, real sockets, a broker that fails now and then: nothing lost, torn or twice.

The interpreter switches threads as often as it can, because what a race needs is bad timing, and
simulation has only one thread at a time.
"""

import os
import threading
from pathlib import Path

import pytest

from broker_stub.testing.when import Randomly
from pyclient import KafkaProducer
from pyclient.clock import SystemClock
from pyclient.errors import NotEnoughReplicasAfterAppendError, NotLeaderOrFollowerError
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.timers import Deadline

THREADS = 8
RECORDS = 600  # a thread
PARTITIONS = 3


def sockets() -> int:
    """How many this process has open."""
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            count += os.readlink(descriptor).startswith("socket:")
        except FileNotFoundError:  # the listing's own
            continue
    return count


def value_of(thread: int, number: int) -> bytes:
    """Tells who sent it, and is long enough to be torn."""
    return b"%d:%d:" % (thread, number) + bytes([65 + thread]) * (number % 200)


def send(producer: KafkaProducer, thread: int, futures: list) -> None:
    """By the fast path and the slow one, in turn."""
    for number in range(RECORDS):
        value = value_of(thread, number)
        arguments = (
            {},
            {"key": b"%d" % thread},
            {"partition": number % PARTITIONS},
            {"headers": [("n", b"%d" % number)]},
        )[number % 4]
        futures.append(producer.send("orders", value, **arguments))


@pytest.mark.parametrize(
    ("memory", "codec"),
    [(33_554_432, None), (100_000, None), (33_554_432, "gzip"), (100_000, "gzip")],
)
def test_nothing_is_lost_torn_or_twice_and_nothing_is_left(
    twin, kafka_broker, written, restless, memory, codec
):
    kafka_broker.create_topic("orders", partitions=PARTITIONS)
    faults = kafka_broker.faults
    faults.fail_randomly(ProduceRequest, NotLeaderOrFollowerError, 0.1, seed=1)
    faults.fail_randomly(ProduceRequest, NotEnoughReplicasAfterAppendError, 0.1, seed=2, after=True)
    faults.drop(ProduceRequest, Randomly(0.05, seed=3), after=True)
    faults.cut(ProduceRequest, 10, Randomly(0.05, seed=4))
    threads_before, sockets_before = set(threading.enumerate()), sockets()
    producer = KafkaProducer(
        bootstrap_servers=kafka_broker.bootstrap_servers,
        batch_size=2_000,  # many batches, so that there is order to lose
        buffer_memory=memory,
        compression_type=codec,
        linger_ms=1,
        retry_backoff_ms=5,
        reconnect_backoff_ms=5,
    )
    futures: list[list] = [[] for _ in range(THREADS)]
    threads = [
        threading.Thread(target=send, args=(producer, number, futures[number]))
        for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.close(timeout=60)

    logs = [written("orders", partition) for partition in range(PARTITIONS)]
    places = {
        record.value: (partition, record.offset)
        for partition, records in enumerate(logs)
        for record in records
    }
    assert sum(map(len, logs)) == len(places) == THREADS * RECORDS  # none twice, none lost
    for thread, sent in enumerate(futures):
        told = [future.get(timeout=0) for future in sent]
        assert [(one.partition, one.offset) for one in told] == [
            places[value_of(thread, number)] for number in range(RECORDS)
        ]
        for partition in range(PARTITIONS):
            offsets = [one.offset for one in told if one.partition == partition]
            assert offsets == sorted(offsets)  # in order
    assert producer._core.pool.available == memory
    assert set(threading.enumerate()) <= threads_before
    deadline = Deadline(SystemClock(), 10_000)  # the broker's end closes a moment later
    while sockets() > sockets_before:
        assert not deadline.expired, "a socket is left"


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("batch_max_size", [2_000, 16_000])
def test_no_batch_is_torn_by_threads_that_fill_it_while_it_is_sent(
    twin, kafka_broker, restless, codec, batch_max_size
):
    """A batch that fails its checksum is sent again, and would not be missed: so count those."""
    kafka_broker.create_topic("orders", partitions=PARTITIONS)
    with KafkaProducer(
        bootstrap_servers=kafka_broker.bootstrap_servers,
        batch_size=2_000,
        batch_max_size=batch_max_size,
        buffer_memory=200_000,
        compression_type=codec,
    ) as producer:
        threads = [
            threading.Thread(target=send, args=(producer, number, [])) for number in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush()
        figures = producer.metrics()["producer-metrics"]
    assert figures["record-send-total"] == THREADS * RECORDS
    assert figures["record-retry-total"] == 0
    assert figures["buffer-available-bytes"] == 200_000
