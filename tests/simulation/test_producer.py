"""Producers in simulated worlds: each acknowledged record once and in order, no memory lost."""

from collections.abc import Callable

import pytest

from broker_stub.testing.simulation import explore
from pyclient.producer.partition_queue import PartitionQueue
from pyclient.producer.producer_batch import ProducerBatch
from pyclient.producer.sequences import PartitionSequences, Sequences
from tests.simulation.explorer import explore_slice
from tests.simulation.producer_history import producer_history

pytestmark = pytest.mark.simulation

Leak = Callable[[ProducerBatch, list[bytearray]], list[bytearray]]


@pytest.mark.timeout(300)
def test_acknowledged_records_are_written_once_and_in_order() -> None:
    explore_slice("producer")


def test_the_check_finds_batches_that_do_not_wait_for_those_before_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def may_drain(sequences: Sequences, _partition: PartitionSequences, _batch: object) -> bool:
        return sequences.has_identity

    monkeypatch.setattr(Sequences, "may_drain", may_drain)
    with pytest.raises(AssertionError, match=r"lost write|non-monotonic|duplicate|OutOfOrder"):
        explore(producer_history, range(200))


def test_the_check_finds_batches_that_go_back_in_front_of_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def put_back(queue: PartitionQueue, batch: ProducerBatch) -> None:
        queue.waiting.appendleft(batch)
        queue.topic.queue_sizes.grow(queue.partition)

    monkeypatch.setattr(PartitionQueue, "put_back", put_back)
    with pytest.raises(AssertionError, match="had its outcome after"):
        explore(producer_history, range(200))


def leak_after_a_retry(batch: ProducerBatch, buffers: list[bytearray]) -> list[bytearray]:
    return buffers[1:] if batch.attempts else buffers


def leak_what_a_batch_grew_by(_batch: ProducerBatch, buffers: list[bytearray]) -> list[bytearray]:
    return buffers[:1]


@pytest.mark.parametrize("leak", [leak_after_a_retry, leak_what_a_batch_grew_by])
def test_the_check_finds_a_leaked_buffer(monkeypatch: pytest.MonkeyPatch, leak: Leak) -> None:
    take_buffers = ProducerBatch.take_buffers
    monkeypatch.setattr(
        ProducerBatch, "take_buffers", lambda batch: leak(batch, take_buffers(batch))
    )
    with pytest.raises(AssertionError, match="bytes are missing"):
        explore(producer_history, range(200))
