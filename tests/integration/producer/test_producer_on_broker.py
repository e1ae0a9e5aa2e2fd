"""KafkaProducer with its thread and sockets, on our broker."""

import asyncio
import itertools
import sys
import threading

import pytest

from pyclient import KafkaProducer
from pyclient.errors import InvalidRecordError, RecordTooLargeError
from pyclient.protocol.messages.produce import ProduceRequest
from tests.support.threads import run_on_threads, switching


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_codec_with_every_acks(kafka_broker, new_producer, written, codec, acks):
    kafka_broker.create_topic("orders", partitions=1)
    producer = new_producer(compression_type=codec, acks=acks)
    sent = [
        producer.send("orders", b"v%d" % number * 20, key=b"k%d" % number, headers=[("h", b"1")])
        for number in range(500)
    ]
    producer.flush(timeout=20)
    producer.close(timeout=20)
    records = written("orders", at_least=500)
    assert [(r.key, r.value, r.headers) for r in records] == [
        (b"k%d" % number, b"v%d" % number * 20, [("h", b"1")]) for number in range(500)
    ]
    expected = [-1] * 500 if acks == 0 else [record.offset for record in records]
    assert [future.get(0).offset for future in sent] == expected


def test_a_split_batch_arrives_whole(kafka_broker, new_producer, written):
    kafka_broker.create_topic("orders", partitions=1, config={"max.message.bytes": 2000})
    producer = new_producer()
    futures = [producer.send("orders", b"%03d" % number + b"x" * 100) for number in range(300)]
    producer.flush(timeout=30)
    assert [future.get(0).offset for future in futures] == list(range(300))
    assert [record.value[:3] for record in written("orders")] == [b"%03d" % n for n in range(300)]
    with pytest.raises(RecordTooLargeError, match=r"max\.message\.bytes"):
        producer.send("orders", b"x" * 3000).get(10)
    assert producer.send("orders", b"goes on").get(10).offset == 300


def test_a_refused_record_fails_and_the_next_one_does_not(kafka_broker, new_producer):
    kafka_broker.create_topic("compacted", partitions=1, config={"cleanup.policy": "compact"})
    producer = new_producer()
    with pytest.raises(InvalidRecordError):
        producer.send("compacted", b"without a key").get(10)
    assert producer.send("compacted", b"v", key=b"k").get(10).offset == 0


def test_it_can_be_awaited(kafka_broker, new_producer):
    kafka_broker.create_topic("orders", partitions=1)
    producer = new_producer()

    async def main():
        futures = [producer.send("orders", b"%d" % number) for number in range(100)]
        return [metadata.offset for metadata in await asyncio.gather(*futures)]

    assert asyncio.run(main()) == list(range(100))


@pytest.mark.parametrize("interval", [None, 1e-6])
def test_eight_threads_send_and_nothing_is_lost_torn_or_twice(
    kafka_broker, new_producer, written, interval
):
    kafka_broker.create_topic("orders", partitions=3)
    producer = new_producer(linger_ms=1)
    count = 300

    def send(thread):
        for number in range(count):
            value = b"%d:%d" % (thread, number)
            producer.send("orders", value, key=b"%d" % (number % 7), partition=number % 3)

    with switching(interval or sys.getswitchinterval()):
        run_on_threads(8, send)
        producer.flush(timeout=60)
    for partition in range(3):
        found = [tuple(map(int, r.value.split(b":"))) for r in written("orders", partition)]
        for thread in range(8):
            mine = [number for sender, number in found if sender == thread]
            assert mine == list(range(partition, count, 3))


def test_a_thousand_partitions_are_one_request_not_a_thousand(kafka_broker, new_producer):
    kafka_broker.create_topic("wide", partitions=1000)
    producer = new_producer(linger_ms=60_000)
    for partition in range(1000):
        producer.send("wide", b"v", partition=partition)
    producer.flush(timeout=60)
    assert kafka_broker.requests.count(ProduceRequest) < 10


def test_close_leaves_no_thread_and_no_memory_behind(kafka_broker):
    before = set(threading.enumerate())
    producer = KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers)
    for _ in range(1000):
        producer.send("orders", b"v" * 100)
    producer.close(timeout=20)
    assert set(threading.enumerate()) <= before
    assert producer._core.pool.available == producer._core.pool.total


def test_two_producers_do_not_disturb_each_others_numbers(kafka_broker, new_producer, written):
    kafka_broker.create_topic("orders", partitions=1)
    one, other = new_producer(linger_ms=0), new_producer(linger_ms=0)
    for number, producer in zip(range(50), itertools.cycle((one, other)), strict=False):
        assert producer.send("orders", b"%d" % number).get(10).offset == number
    assert len(written("orders")) == 50
