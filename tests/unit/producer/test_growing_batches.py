"""Batches grow while their partition waits, by whole buffers, within every limit."""

import pytest

from pyclient.config import producer as producer_config
from pyclient.errors import KafkaConfigurationError
from tests.support.sender_world import SenderWorld

VALUE = b"x" * 100  # two fit into a buffer of 300


def world_of(**options):
    return SenderWorld(
        **{
            "partitions": 1,
            "batch_size": 300,
            "batch_max_size": 900,
            "memory": 6000,
            "max_request_size": 6000,
            **options,
        }
    )


def results_of(world, count):
    return [world.send(VALUE, 0).batch_result for _ in range(count)]


def test_a_batch_grows_up_to_its_limit_and_another_one_follows(twin):
    world = world_of()
    results = results_of(world, 7)
    assert all(one is results[0] for one in results[:6])  # three buffers of two
    assert results[6] is not results[0]
    assert world.pool.available == 6000 - 4 * 300
    world.settle()
    assert world.values(0) == [VALUE] * 7
    world.check_memory()


def test_a_batch_that_goes_on_growing_takes_several_buffers_and_gives_back_what_it_did_not_need(
    twin,
):
    world = world_of(batch_max_size=3000)
    results = results_of(world, 7)  # one buffer, two more, and six at once: of two records each
    assert all(one is results[0] for one in results)
    assert world.pool.available == 6000 - 9 * 300
    world.poll()
    assert world.pool.available == 6000 - 4 * 300
    world.settle()
    assert world.values(0) == [VALUE] * 7
    world.check_memory()


def test_a_batch_of_batch_size_is_ready_though_it_may_grow(twin):
    world = world_of(linger_ms=1000)
    results_of(world, 2)
    assert not world.accumulator.ready_nodes(0)
    results_of(world, 1)  # the first that did not fit into the first buffer
    assert world.accumulator.ready_nodes(0) == [1]


def test_a_batch_that_went_out_does_not_grow(twin):
    world = world_of()
    first = results_of(world, 3)[0]
    world.poll()
    assert results_of(world, 1)[0] is not first


def test_equal_sizes_let_nothing_grow(twin):
    world = world_of(batch_max_size=300)
    results = results_of(world, 3)
    assert results[0] is results[1]
    assert results[2] is not results[0]


def test_growth_takes_no_memory_that_others_wait_for(twin):
    world = world_of(memory=900)
    results_of(world, 2)
    held = [world.pool.try_allocate(300), world.pool.try_allocate(300)]
    world.engine.meanwhile.append(lambda: world.pool.release(held[:1]))
    first, second = results_of(world, 2)  # the first of them has to wait, in a batch of its own
    assert first is second


def test_an_old_batch_does_not_grow(twin):
    world = world_of(delivery_timeout_ms=1000, linger_ms=1000)
    first = results_of(world, 2)[0]
    world.clock.advance(501)
    assert results_of(world, 1)[0] is not first


def test_a_record_larger_than_a_buffer_does_not_make_a_batch_grow(twin):
    world = world_of()
    first = results_of(world, 1)[0]
    assert world.send(b"y" * 400, 0).batch_result is not first
    world.settle()
    assert world.values(0) == [VALUE, b"y" * 400]


def test_after_a_refusal_nothing_of_the_topic_grows_any_more(twin):
    world = world_of()
    world.batch_bytes_max = 400
    results_of(world, 6)
    world.settle()
    assert world.values(0) == [VALUE] * 6
    later = results_of(world, 4)
    assert later[0] is later[1]
    assert later[2] is not later[0]
    world.settle()
    world.check_memory()


def test_records_without_a_key_stay_while_their_batch_grows_and_then_move_on(twin):
    world = world_of(partitions=2, batch_max_size=1200)
    for _ in range(16):
        world.send(VALUE)
    queues = world.accumulator.topics["t"].queues
    assert [len(queue.waiting) for queue in queues] in ([1, 1], [2, 0], [0, 2])
    assert all(batch.buffer_count == 4 for queue in queues for batch in queue.waiting)
    world.settle()
    assert len(world.values(0)) + len(world.values(1)) == 16


def test_queues_are_measured_in_buffers(twin):
    world = world_of(batch_max_size=1500)
    results_of(world, 9)
    sizes = world.accumulator.topics["t"].queue_sizes
    assert (sizes.low, sizes.high) == (5, 5)
    world.settle()
    assert (sizes.low, sizes.high) == (0, 0)


class TestCompression:
    def test_compressed_batches_fill_batch_size_on_the_wire(self, twin):
        world = world_of(codec=1, batch_max_size=300, memory=60_000, max_request_size=20_000)
        for _ in range(40):
            results_of(world, 30)
            world.settle()
        batches = world.logs[0].batches
        assert len(batches[0].decode()) == 2
        assert max(len(batch.decode()) for batch in batches[-4:]) > 10
        assert max(batch.size_in_bytes for batch in batches) <= 300

    def test_a_worse_ratio_counts_at_once_and_a_better_one_by_and_by(self, twin):
        topic = world_of().accumulator.topics["t"]
        topic.observe_ratio(0.2)
        assert topic.compression_ratio == pytest.approx(0.8)
        topic.observe_ratio(0.2)
        assert topic.compression_ratio == pytest.approx(0.65)
        topic.observe_ratio(0.9)
        assert topic.compression_ratio == pytest.approx(0.9)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "batch_size", "batch_max_size"),
        [
            ({}, 16_384, 262_144),
            ({"batch_size": 500_000}, 500_000, 500_000),
            ({"batch_max_size": 1000}, 1000, 1000),
            ({"max_request_size": 100_000}, 16_384, 100_000),
            ({"batch_size": 0}, 0, 262_144),
        ],
    )
    def test_what_was_not_set_follows_what_was(self, options, batch_size, batch_max_size):
        config = producer_config.parse({"bootstrap_servers": "h:1", **options})
        assert (config["batch.size"], config["batch.max.size"]) == (batch_size, batch_max_size)

    @pytest.mark.parametrize(
        "options",
        [{"batch_size": 200, "batch_max_size": 100}, {"batch_max_size": 2_000_000}],
    )
    def test_contradictions_name_both(self, options):
        with pytest.raises(KafkaConfigurationError, match=r"batch\.max\.size=.* contradicts "):
            producer_config.parse({"bootstrap_servers": "h:1", **options})
