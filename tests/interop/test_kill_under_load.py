"""kill -9 while librdkafka's idempotent producer is at work: every acked record, once.

Whether that producer has to send a batch again is up to chance. So a second one writes to the same
log, and sends again after every start what was acked before the kill.
"""

import os
import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pyclient.errors import OutOfOrderSequenceError
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch, produce_request
from tests.support.server_process import ServerProcess

TIMEOUT_SECONDS = 60
PARTITIONS = 2
ROUNDS = 5
SOAK_ROUNDS = 20
RECORDS_A_ROUND = 4000
SEGMENT_BYTES = 200_000
BATCHES_REMEMBERED = 5  # by a broker, of each producer in each partition


class Load:
    """Unique values to two partitions, and where each was acked."""

    def __init__(self, bootstrap: str) -> None:
        self.acked: dict[bytes, tuple[int, int]] = {}
        self.failed: list[object] = []
        self._sent = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "batch.num.messages": 50,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )

    def _on_delivered(self, error, message) -> None:
        if error is not None:
            self.failed.append(error)
        else:
            self.acked[message.value()] = (message.partition(), message.offset())

    def send(self, count: int) -> None:
        for _ in range(count):
            value = b"value-%d" % self._sent
            self._producer.produce(
                "orders", value, partition=self._sent % PARTITIONS, on_delivery=self._on_delivered
            )
            self._sent += 1

    def wait_for_acks(self, count: int) -> None:
        while len(self.acked) + len(self.failed) < count:
            assert self._producer.poll(TIMEOUT_SECONDS) > 0, "no ack came"

    def flush(self) -> None:
        assert self._producer.flush(TIMEOUT_SECONDS) == 0


def read_all(bootstrap: str) -> dict[int, list[bytes]]:
    """All values by partition, up to its end now; the list's index is the offset."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "log_level": 0})
    try:
        found = {}
        for index in range(PARTITIONS):
            start, end = consumer.get_watermark_offsets(
                TopicPartition("orders", index), TIMEOUT_SECONDS
            )
            assert start == 0
            consumer.assign([TopicPartition("orders", index, 0)])
            values: list[bytes] = []
            while len(values) < end:
                message = consumer.poll(TIMEOUT_SECONDS)
                assert message is not None
                assert message.error() is None
                assert message.offset() == len(values), "a hole in the offsets"
                values.append(message.value())
            found[index] = values
        return found
    finally:
        consumer.close()


class Sent(NamedTuple):
    """A batch of one record that was acked."""

    value: bytes
    data: bytes
    offset: int


class Retrier:
    """An idempotent producer by hand: it knows the bytes and the answer of every batch."""

    PARTITION = 0

    def __init__(self, port: int, sizes: random.Random) -> None:
        self.acked: dict[bytes, tuple[int, int]] = {}
        self._sizes = sizes
        self._last: deque[Sent] = deque(maxlen=BATCHES_REMEMBERED)
        with RawClient(port) as client:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
            given = client.ask(request, 4)
        assert given.error_code == 0
        self._identity = {
            "producer_id": given.producer_id,
            "producer_epoch": given.producer_epoch,
        }

    def write(self, port: int, count: int) -> None:
        """Write batches of random sizes: segments end, and snapshots are taken, between any two."""
        with RawClient(port) as client:
            for _ in range(count):
                self._write_next(client)

    def write_again(self, port: int) -> None:
        """Send the last acked batch again, then one that leaves a gap, then the next in order."""
        with RawClient(port) as client:
            assert len(self._last) == BATCHES_REMEMBERED
            for one in self._last:
                assert self._answer(client, one.data) == (0, one.offset), "not known as a retry"
            _, gap = self._batch_of(len(self.acked) + 1)
            assert self._answer(client, gap)[0] == OutOfOrderSequenceError.code
            self._write_next(client)

    def _write_next(self, client: RawClient) -> None:
        value, data = self._batch_of(len(self.acked))
        error_code, offset = self._answer(client, data)
        assert error_code == 0
        self.acked[value] = (self.PARTITION, offset)
        self._last.append(Sent(value, data, offset))

    def _batch_of(self, sequence: int) -> tuple[bytes, bytes]:
        value = b"by-hand-%d-" % sequence + bytes(self._sizes.randrange(SEGMENT_BYTES // 6))
        return value, batch(value, base_sequence=sequence, **self._identity)

    def _answer(self, client: RawClient, data: bytes) -> tuple[int, int]:
        response = client.ask(produce_request("orders", data, partition=self.PARTITION), 9)
        (answer,) = response.responses[0].partition_responses
        return answer.error_code, answer.base_offset


def kill_again_and_again(
    folder: Path, rounds: int, is_over: Callable[[], bool] = lambda: False
) -> int:
    """Kill the broker under load, `rounds` times or until `is_over`; returns how often."""
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print(f"SEED={seed} repeats the moments")  # shown with a failure
    moments = random.Random(seed)
    config = (f"num.partitions={PARTITIONS}", f"log.segment.bytes={SEGMENT_BYTES}")
    options = [f"--config={one}" for one in config]
    done = 0
    with ServerProcess("--data-dir", folder, *options) as server:
        load = Load(server.bootstrap_servers)
        load.send(1)
        load.wait_for_acks(1)  # which makes the topic
        retrier = Retrier(server.port, moments)
        while done < rounds and not is_over():
            load.send(RECORDS_A_ROUND)
            load.wait_for_acks(1 + done * RECORDS_A_ROUND + moments.randrange(RECORDS_A_ROUND))
            retrier.write(server.port, moments.randrange(BATCHES_REMEMBERED, 12))
            server.kill()
            server.start()
            retrier.write_again(server.port)
            done += 1
        load.flush()
        found = read_all(server.bootstrap_servers)
    assert load.failed == []
    assert len(load.acked) == 1 + done * RECORDS_A_ROUND
    acked = load.acked | retrier.acked
    every = [value for values in found.values() for value in values]
    assert len(every) == len(set(every)) == len(acked)
    for value, (partition, offset) in acked.items():
        assert found[partition][offset] == value
    return done


@pytest.mark.timeout(300)
def test_every_acked_record_is_there_once_after_kill_9(tmp_path):
    assert kill_again_and_again(tmp_path, ROUNDS) == ROUNDS


@pytest.mark.soak
def test_soak_kill_9_under_load(tmp_path, soak_is_over):
    print(f"{kill_again_and_again(tmp_path, SOAK_ROUNDS, soak_is_over)} rounds")
