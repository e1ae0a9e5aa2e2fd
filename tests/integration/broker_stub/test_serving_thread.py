"""What may block runs elsewhere: fsync, compaction, deletion and recovery of a live broker."""

import os
import shutil
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from broker_stub import Broker
from broker_stub.log import log_manager
from broker_stub.log.batch.batch_checker import BatchChecker
from broker_stub.log.cleaning.compaction import Compaction
from broker_stub.log.index.segment_indexes import SegmentIndexes
from broker_stub.log.partition_log import PartitionLog
from broker_stub.node import Node
from pyclient.clock import ManualClock
from pyclient.errors import KafkaStorageError
from pyclient.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch, produce_request

TIMEOUT_SECONDS = 20


class Threads:
    """Records which threads made the watched calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._changed = threading.Condition()
        self._seen: set[tuple[str, threading.Thread]] = set()  # not idents: those are used again

    def watch(self, what: str, owner: Any, name: str, *, ending: str = "") -> None:
        """Record the calling thread; with a suffix, only for paths that end so."""
        call: Callable[..., Any] = getattr(owner, name)

        def watched(*arguments: Any, **options: Any) -> Any:
            if not ending or str(arguments[0]).endswith(ending):
                with self._changed:
                    self._seen.add((what, threading.current_thread()))
                    self._changed.notify_all()
            return call(*arguments, **options)

        self._monkeypatch.setattr(owner, name, watched)

    def wait_for(self, what: str) -> None:
        with self._changed:
            assert self._changed.wait_for(
                lambda: any(seen == what for seen, _ in self._seen), TIMEOUT_SECONDS
            ), f"no {what}"

    def those_on(self, thread: threading.Thread) -> set[str]:
        return {what for what, seen_on in self._seen if seen_on is thread}


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    made = Threads(monkeypatch)
    made.watch("fsync", os, "fsync")
    made.watch("removal of a file", os, "unlink", ending=".deleted")
    made.watch("removal of a folder", shutil, "rmtree", ending="-delete")
    made.watch("compaction", Compaction, "run")
    made.watch("recovery", log_manager, "load_log")
    made.watch("recovery", BatchChecker, "batch_at")
    made.watch("making of an index", SegmentIndexes, "take_place_of")
    made.watch("look at what producers wrote", PartitionLog, "recall_producers")
    return made


def create(client: RawClient, name: str, **configs: str) -> None:
    topic = CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    assert client.ask(CreateTopicsRequest(topics=[topic]), 5).topics[0].error_code == 0


def produce(client: RawClient, topic: str, count: int = 1) -> None:
    for _ in range(count):
        response = client.ask(produce_request(topic, batch(b"value", key=b"key")), 9)
        assert response.responses[0].partition_responses[0].error_code == 0


def test_nothing_that_may_block_runs_on_the_serving_thread(threads):
    clock = ManualClock()
    with Broker(clock=clock) as broker, RawClient(broker.port) as client:
        create(client, "synced", flush_messages="1")
        produce(client, "synced")  # the ack waits for an fsync
        small = {"segment_bytes": "150", "file_delete_delay_ms": "0"}
        create(client, "compacted", cleanup_policy="compact", **small)
        create(client, "expiring", retention_bytes="0", **small)
        produce(client, "compacted", 10)
        produce(client, "expiring", 10)
        clock.advance(300_000)
        for what in ("fsync", "compaction", "removal of a file"):
            threads.wait_for(what)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="expiring")])
        assert client.ask(request, 6).responses[0].error_code == 0
        threads.wait_for("removal of a folder")
        serving = broker.call(lambda node: threading.current_thread())
        broker.kill()
        broker.start()
        threads.wait_for("recovery")
        serving_again = broker.call(lambda node: threading.current_thread())
    assert threads.those_on(serving) == set()
    assert threads.those_on(serving_again) == set()


def test_a_damaged_index_found_by_a_read_is_rebuilt_on_another_thread(threads):
    with Broker() as broker:
        with RawClient(broker.port) as client:
            create(client, "orders", index_interval_bytes="1")
            produce(client, "orders", 10)
        broker.restart()
        assert broker.data_dir is not None
        index = broker.data_dir / "orders-0" / f"{0:020d}.index"
        with index.open("r+b") as file:
            file.write(b"\xff" * index.stat().st_size)
        serving = broker.call(lambda node: threading.current_thread())
        for offset in range(10):
            assert broker.call(partial(read_end, offset=offset)) == offset + 1
        threads.wait_for("making of an index")
    assert threads.those_on(serving) == set()


def test_what_producers_wrote_before_a_start_is_read_elsewhere(threads):
    def produce_as_idempotent(client: RawClient, sequence: int) -> tuple[int, int]:
        fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
        response = client.ask(produce_request("orders", batch(b"value", **fields)), 9)
        written = response.responses[0].partition_responses[0]
        return written.error_code, written.base_offset

    with Broker() as broker:
        broker.create_topic("orders")
        with RawClient(broker.port) as client:
            for sequence in range(9):
                produce_as_idempotent(client, sequence)
        broker.restart()
        serving = broker.call(lambda node: threading.current_thread())
        with RawClient(broker.port) as client:
            while (answer := produce_as_idempotent(client, 4))[0]:
                assert answer[0] == KafkaStorageError.code
            assert answer[1] == 4
            assert [produce_as_idempotent(client, number)[1] for number in range(5, 10)] == [
                *range(5, 10)
            ]
        threads.wait_for("look at what producers wrote")
    assert threads.those_on(serving) == set()


def read_end(node: Node, offset: int) -> int:
    """Where a read of one batch ends."""
    return node.replicas.partition("orders", 0).log.read(offset, 1).next_offset
