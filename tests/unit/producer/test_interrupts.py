"""A signal handler interrupts the main thread inside `send`: nothing is lost, torn or stuck."""

import pytest

from pyclient._pure.builder import BatchBuilder as PureBuilder
from pyclient.errors import IllegalStateError
from pyclient.producer import (
    batch_sizing,
    buffer_pool,
    delivery_deadlines,
    partition_queue,
    ready_partitions,
)
from pyclient.producer.producer_batch import ProducerBatch
from pyclient.producer.record_accumulator import RecordAccumulator
from tests.support.interrupts import Interrupt, lines_of
from tests.support.sender_world import SenderWorld

GZIP = 1
VALUE = b"x" * 100  # two fit into a buffer of 300

# Every line that may run under a lock while a caller starts, grows and seals batches.
INTERRUPTED = (
    RecordAccumulator._append_to_new,
    RecordAccumulator._try_append,
    RecordAccumulator._new_batch,
    RecordAccumulator._begin,
    RecordAccumulator._add,
    partition_queue.PartitionQueue.push,
    partition_queue.PartitionQueue.grown,
    partition_queue.PartitionQueue.seal,
    delivery_deadlines.DeliveryDeadlines.watch,
    ready_partitions.ReadyPartitions.evaluate,
    ready_partitions.ReadyPartitions._add,
    ready_partitions.ReadyPartitions._set_timer,
    buffer_pool.BufferPool.allocate,
    buffer_pool.BufferPool.try_allocate,
    buffer_pool.BufferPool.lend,
    buffer_pool.BufferPool._buffer_of,
    batch_sizing.BatchSizing.grow,
    PureBuilder.extend,
)
WHERE_BATCHES_ARE_COMPRESSED = (
    RecordAccumulator._append_to_new,
    RecordAccumulator._try_append,
    RecordAccumulator._compress,
    RecordAccumulator._end_compressing,
    ProducerBatch.begin_compressing,
    ProducerBatch.compress,
    buffer_pool.BufferPool.exchange,
)


def world_of(**options):
    return SenderWorld(
        1,
        **{
            "batch_size": 300,
            "batch_max_size": 600,
            "memory": 6000,
            "max_request_size": 6000,
            **options,
        },
    )


@pytest.mark.parametrize(
    ("code", "line", "codec"),
    [*lines_of(INTERRUPTED, 0), *lines_of(WHERE_BATCHES_ARE_COMPRESSED, GZIP)],
)
def test_ctrl_c_at_any_line_loses_and_tears_nothing_that_was_taken(code, line, codec, twin):
    world = world_of(delivery_timeout_ms=10**6, codec=codec)
    sent = []
    with Interrupt(code, line) as interrupt:
        for number in range(12):
            value = b"%03d" % number + VALUE
            try:
                world.send(value, 0)
            except KeyboardInterrupt:
                continue
            sent.append(value)
    world.settle()
    written = world.values(0)
    # The record of the interrupted call may have been taken, or not.
    assert [value for value in written if value in sent] == sent
    assert len(written) <= len(sent) + interrupt.happened
    assert written == sorted(set(written))
    world.check_memory()


def test_a_handler_that_uses_the_interrupted_producer_is_told(twin):
    world = world_of()
    with world.accumulator._lock:
        for call in (
            lambda: world.send(VALUE, 0),
            world.accumulator.seal_all,
            world.accumulator.close,
        ):
            with pytest.raises(IllegalStateError, match="signal handler"):
                call()
    with world.pool._lock, pytest.raises(IllegalStateError, match="signal handler"):
        world.send(VALUE, 0)
    world.send(VALUE, 0)
    world.settle()
    assert world.values(0) == [VALUE]


def test_a_handler_that_waits_for_the_batch_its_thread_compresses_is_told(monkeypatch):
    world = world_of(codec=GZIP, batch_max_size=300)
    refusals = []

    def compress(batch, pool):
        monkeypatch.undo()
        for call in (world.accumulator.seal_all, world.accumulator.close):
            with pytest.raises(IllegalStateError, match="signal handler") as caught:
                call()
            refusals.append(caught)

    monkeypatch.setattr(ProducerBatch, "compress", compress)
    for _ in range(3):
        world.send(VALUE, 0)
    assert len(refusals) == 2
    world.settle()
    assert world.values(0) == [VALUE] * 3


def test_memory_can_be_looked_at_while_the_pool_is_locked():
    pool = buffer_pool.BufferPool(
        100, 10, clock=None, waiter=lambda: None, on_exhausted=lambda: None
    )
    with pool._lock:
        assert pool.available == 100
