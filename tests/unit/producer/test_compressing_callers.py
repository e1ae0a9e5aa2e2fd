"""The thread that fills a batch compresses it; no interleaving loses records."""

import pytest

from pyclient.errors import Cancelled, IllegalStateError, KafkaTimeoutError
from pyclient.producer.producer_batch import ProducerBatch
from tests.support.sender_world import SenderWorld

GZIP = 1
VALUE = b"x" * 100  # two fit into a buffer of 300
LATER = b"later" * 20


@pytest.fixture
def world(twin):
    return SenderWorld(1, codec=GZIP, batch_size=300, memory=6000, max_request_size=6000)


@pytest.fixture
def while_compressing(monkeypatch):
    """Run a function once, while the first batch is being compressed."""

    def arrange(event):
        compress = ProducerBatch.compress

        def compressing(batch, pool):
            monkeypatch.setattr(ProducerBatch, "compress", compress)
            event()
            compress(batch, pool)

        monkeypatch.setattr(ProducerBatch, "compress", compressing)

    return arrange


def waiting(world):
    return world.accumulator.topics["t"].queues[0].waiting


def test_a_full_batch_is_compressed_before_the_next_record_is_taken(world):
    for _ in range(3):
        world.send(VALUE, 0)
    full, still_open = waiting(world)
    assert full.builder.is_closed
    assert full.size_in_bytes < full.builder.raw_size
    assert not still_open.builder.is_closed
    world.settle()
    assert world.values(0) == [VALUE] * 3
    world.check_memory()


def test_a_batch_is_not_sent_while_it_is_being_compressed(world, while_compressing):
    nodes = []
    while_compressing(
        lambda: nodes.extend(world.accumulator.ready_nodes(world.clock.monotonic_ms()))
    )
    for _ in range(3):
        world.send(VALUE, 0)
    assert nodes == []
    assert world.accumulator.ready_nodes(world.clock.monotonic_ms()) == [1]


def test_a_batch_that_was_ready_is_not_sent_once_it_is_being_compressed(twin, while_compressing):
    world = SenderWorld(
        1, codec=GZIP, batch_size=300, batch_max_size=600, memory=6000, max_request_size=6000
    )
    for _ in range(3):
        world.send(VALUE, 0)
    assert world.accumulator.ready_nodes(world.clock.monotonic_ms()) == [1]  # and may still grow
    drained = []

    def drain():
        now_ms = world.clock.monotonic_ms()
        drained.extend(world.accumulator.drain(1, 10**6, now_ms, lambda queue, batch: True))

    while_compressing(drain)
    for _ in range(4):
        world.send(VALUE, 0)
    assert drained == []
    world.settle()
    assert world.values(0) == [VALUE] * 7
    world.check_memory()


def test_the_io_thread_compresses_again_what_was_interrupted(world, while_compressing):
    def interrupt():
        raise KeyboardInterrupt

    while_compressing(interrupt)
    for _ in range(2):
        world.send(VALUE, 0)
    with pytest.raises(KeyboardInterrupt):
        world.send(b"never" * 20, 0)
    world.send(LATER, 0)
    world.settle()
    assert world.values(0) == [VALUE, VALUE, LATER]
    world.check_memory()


def test_memory_comes_back_when_the_producer_ends_meanwhile(world, while_compressing):
    futures = [world.send(VALUE, 0) for _ in range(2)]
    while_compressing(lambda: world.outcomes.abort(Cancelled("closed")))
    with pytest.raises((Cancelled, IllegalStateError)):
        world.send(b"too late" * 13, 0)
    assert all(isinstance(future.exception, Cancelled) for future in futures)
    assert world.pool.available == world.pool.total


def test_memory_comes_back_when_time_runs_out_meanwhile(world, while_compressing):
    def run_out():
        world.clock.advance(2000)
        world.outcomes.expire(world.clock.monotonic_ms())

    futures = [world.send(VALUE, 0) for _ in range(2)]
    while_compressing(run_out)
    world.send(LATER, 0)
    assert all(isinstance(future.exception, KafkaTimeoutError) for future in futures)
    world.settle()
    assert world.values(0) == [LATER]
    world.check_memory()
