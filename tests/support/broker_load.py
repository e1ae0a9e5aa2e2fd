"""Load on any broker, and what its process spends on it.

confluent-kafka produces and consumes; a bare loop fetches without looking at records. Every
function returns what it moved, so that the caller divides by time and by the process's CPU.
"""

import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4
TIMEOUT_SECONDS = 120

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_FETCH = (1, 11)
_FETCH_BYTES = 1 << 20
# Behind correlation id, throttle time, error, session, topic count, then name, partition count,
# index, error, high watermark, stable and start offsets, no aborted list, preferred replica.
_BEFORE_NAME = 4 + 4 + 2 + 4 + 4 + 2
_BEHIND_NAME = 4 + 4 + 2 + 8 + 8 + 8 + 4 + 4


def cpu_seconds(pid: int) -> float:
    """What a process has spent so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid: int) -> int:
    """What a process has in memory."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * _PAGE


def create_topic(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> None:
    """Make a topic, and return when it can be written to."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(TIMEOUT_SECONDS)


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    admin.delete_topics([topic])[topic].result(TIMEOUT_SECONDS)


def produce(
    bootstrap: str, topic: str, record_bytes: int, total_bytes: int, *, even_batches: bool = False
) -> int:
    """Send records of one size, idempotently, and wait until all are acknowledged; bytes sent.

    With `even_batches` all batches have the same size, about half a megabyte; otherwise a broker
    that answers sooner gets smaller ones.
    """
    batches = {"linger.ms": 5}
    if even_batches:
        batches = {"linger.ms": 1000, "batch.num.messages": 500_000 // record_bytes}
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "queue.buffering.max.messages": 1_000_000,
            **batches,
        }
    )
    value = os.urandom(record_bytes)
    count = total_bytes // record_bytes
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(TIMEOUT_SECONDS) == 0, "records were not acknowledged"
    return count * record_bytes


@contextmanager
def reading_consumer(bootstrap: str, topic: str) -> Iterator[Callable[[int, int], int]]:
    """Start a consumer at every partition's start; the result reads a number of record bytes.

    It has its first record already: before that, librdkafka waits for half a second.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "load",
            "enable.auto.commit": False,
            # The broker is measured here, so the client must not be the limit. Its defaults let
            # its queue run dry at small records; a longer queue, or more records a call, makes
            # its own work on a record dearer by half.
            "queued.min.messages": 20_000,
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(PARTITIONS)])

    def consume(record_bytes: int, total_bytes: int) -> int:
        left = total_bytes // record_bytes - 1
        while left:
            messages = consumer.consume(min(left, 1_000), TIMEOUT_SECONDS)
            assert messages, "no records came"
            left -= len(messages)
        return total_bytes

    try:
        assert consumer.consume(1, TIMEOUT_SECONDS), "no records came"
        yield consume
    finally:
        consumer.close()


@contextmanager
def waiting_consumer(bootstrap: str, topic: str) -> Iterator[Callable[[float], None]]:
    """A consumer that waits for records that never come; the result takes the seconds to wait."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "idle"})
    consumer.assign([TopicPartition(topic, 0)])

    def wait(seconds: float) -> None:
        assert consumer.poll(seconds) is None, "a record came"

    try:
        yield wait
    finally:
        consumer.close()


def fetch_bare(port: int, topic: str, total_bytes: int) -> int:
    """Fetch the first partition over and over, from its start to its end; bytes of records."""
    moved = 0
    offset = 0
    buffer = bytearray(4 * _FETCH_BYTES)
    view = memoryview(buffer)
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS) as connection:
        while moved < total_bytes:
            connection.sendall(_fetch_frame(topic, offset))
            length = _receive_frame(connection, view)
            start = _BEFORE_NAME + len(topic) + _BEHIND_NAME
            (size,) = struct.unpack_from(">i", view, start)
            if size == 0:
                offset = 0
                continue
            offset = _behind_batches(view, start + 4, length)
            moved += size
    return moved


def _fetch_frame(topic: str, offset: int) -> bytes:
    name = topic.encode()
    body: list[Any] = [
        struct.pack(">hhih", *_FETCH, 1, -1),
        # replica id, max wait, min bytes, max bytes, isolation level, no session, one topic
        struct.pack(">iiiibiii", -1, 0, 0, 50 << 20, 0, 0, -1, 1),
        struct.pack(">h", len(name)) + name,
        # one partition: index, leader epoch, offset, log start offset, max bytes
        struct.pack(">iiiqqi", 1, 0, -1, offset, -1, _FETCH_BYTES),
        struct.pack(">ih", 0, 0),  # nothing forgotten, no rack
    ]
    data = b"".join(body)
    return struct.pack(">i", len(data)) + data


def _receive_frame(connection: socket.socket, view: memoryview) -> int:
    """Receive a frame, without its length, into the buffer; returns its length."""
    head = connection.recv(4, socket.MSG_WAITALL)
    (length,) = struct.unpack(">i", head)
    received = 0
    while received < length:
        count = connection.recv_into(view[received:length])
        assert count, "the broker hung up"
        received += count
    return int(length)


def _behind_batches(view: memoryview, position: int, end: int) -> int:
    """The offset after the last batch, from the batch headers alone."""
    offset = 0
    while position < end:
        base_offset, length = struct.unpack_from(">qi", view, position)
        (last_delta,) = struct.unpack_from(">i", view, position + 23)
        offset = base_offset + last_delta + 1
        position += 12 + length
    return offset
