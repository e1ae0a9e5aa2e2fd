"""kill -9 while librdkafka's idempotent producer is at work: every acked record, once."""

from __future__ import annotations

import os
import random

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.server_process import ServerProcess

TIMEOUT_SECONDS = 60
PARTITIONS = 2
ROUNDS = int(os.environ.get("KILL_ROUNDS") or 5)
RECORDS_A_ROUND = 4000


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
    """Every value by partition, up to the end it has now; the list's index is the offset."""
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


@pytest.mark.timeout(300)
def test_every_acked_record_is_there_once_after_kill_9(tmp_path):
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print(f"SEED={seed} repeats the moments")  # shown with a failure
    moments = random.Random(seed)
    config = ("--config", f"num.partitions={PARTITIONS}", "--config", "log.segment.bytes=200000")
    with ServerProcess("--data-dir", tmp_path, *config) as server:
        load = Load(server.bootstrap_servers)
        for turn in range(ROUNDS):
            load.send(RECORDS_A_ROUND)
            load.wait_for_acks(turn * RECORDS_A_ROUND + moments.randrange(RECORDS_A_ROUND))
            server.kill()
            server.start()
        load.flush()
        found = read_all(server.bootstrap_servers)
    assert load.failed == []
    assert len(load.acked) == ROUNDS * RECORDS_A_ROUND
    every = [value for values in found.values() for value in values]
    assert len(every) == len(set(every)) == len(load.acked)
    for value, (partition, offset) in load.acked.items():
        assert found[partition][offset] == value
