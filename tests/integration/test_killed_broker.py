"""The broker killed for real, under load, and started again on its port: our clients go on.

The producer's records are there once each, in order; the members of a group go on from what they
committed, skip nothing, and repeat only what they had not committed yet.
"""

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from tests.support.server_process import ServerProcess

TOPIC = "orders"
PARTITIONS = 4
KILLS = 3
RECORDS_A_ROUND = 3000
TIMEOUT_SECONDS = 60


class Member(threading.Thread):
    """Reads in a group until told to stop; remembers every record it was given."""

    def __init__(self, servers: str, on_read: Callable[[], None]) -> None:
        super().__init__()
        self._servers = servers
        self._on_read = on_read
        self.stopping = threading.Event()
        self.read: list[tuple[int, int, bytes]] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with KafkaConsumer(
                TOPIC,
                bootstrap_servers=self._servers,
                group_id="kitchen",
                auto_offset_reset="earliest",
                auto_commit_interval_ms=100,
                session_timeout_ms=6000,
                heartbeat_interval_ms=500,
            ) as consumer:
                while not self.stopping.is_set():
                    for partition, records in consumer.poll(timeout_ms=200).items():
                        self.read += [(partition.partition, r.offset, r.value) for r in records]
                        self._on_read()
        except Exception as error:  # noqa: BLE001  the test fails with it
            self.error = error
            self._on_read()


def read_everything(servers: str) -> dict[tuple[int, int], bytes]:
    """The whole topic, by partition and offset."""
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    found = {}
    with KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False) as consumer:
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        while any(consumer.position(one) < ends[one] for one in partitions):
            polled = consumer.poll(timeout_ms=TIMEOUT_SECONDS * 1000)
            assert polled, "the log ends before its end"
            for partition, records in polled.items():
                for record in records:
                    found[partition.partition, record.offset] = record.value
    return found


@pytest.mark.timeout(240)
def test_producer_and_group_go_on_over_kills(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print(f"SEED={seed} repeats the moments")  # shown with a failure
    moments = random.Random(seed)
    with ServerProcess("--data-dir", tmp_path, "--config", "num.partitions=4") as server:
        servers = server.bootstrap_servers
        seen_all, sent_all = threading.Event(), threading.Event()
        members: list[Member] = []
        acked: dict[tuple[int, int], bytes] = {}

        def look() -> None:
            seen = {
                (partition, offset) for member in members for partition, offset, _ in member.read
            }
            if any(member.error for member in members) or (
                sent_all.is_set() and seen >= acked.keys()
            ):
                seen_all.set()

        members += [Member(servers, look), Member(servers, look)]
        with KafkaProducer(bootstrap_servers=servers, linger_ms=2, batch_size=2000) as producer:
            producer.send(TOPIC, b"first").get(TIMEOUT_SECONDS)
            for member in members:
                member.start()
            futures = []
            for turn in range(KILLS + 1):
                start = len(futures)
                futures += [
                    producer.send(TOPIC, b"value %d %d" % (turn, number))
                    for number in range(RECORDS_A_ROUND)
                ]
                if turn < KILLS:
                    futures[start + moments.randrange(RECORDS_A_ROUND)].get(TIMEOUT_SECONDS)
                    server.kill()
                    server.start()
            producer.flush(TIMEOUT_SECONDS)
        values = [
            b"value %d %d" % (turn, number)
            for turn in range(KILLS + 1)
            for number in range(RECORDS_A_ROUND)
        ]
        for future, value in zip(futures, values, strict=True):
            metadata = future.get(0)
            acked[metadata.partition, metadata.offset] = value
        sent_all.set()
        look()
        seen_in_time = seen_all.wait(TIMEOUT_SECONDS)
        for member in members:
            member.stopping.set()
        for member in members:
            member.join(TIMEOUT_SECONDS)
        found = read_everything(servers)
    assert [member.error for member in members] == [None, None]
    # Each acked record is there, where its future said, and nothing is there twice.
    assert len(acked) == len(values)
    first = next(place for place, value in found.items() if value == b"first")
    assert found == {**acked, first: b"first"}
    assert seen_in_time, "the group did not read everything"
    for member in members:
        assert all(found[partition, offset] == value for partition, offset, value in member.read)
