"""The accumulator: batches, readiness, draining, expiry; the pool's accounting stays right."""

import itertools
import threading

import pytest

from pyclient.errors import (
    BufferExhaustedError,
    IllegalStateError,
    RecordTooLargeError,
)
from tests.support.sender_world import SenderWorld
from tests.support.threads import switching


def ready_nodes(world):
    return world.accumulator.ready_nodes(world.clock.monotonic_ms())


def drain(world, node=1, max_bytes=10**6, may_drain=lambda queue, batch: True):
    return world.accumulator.drain(node, max_bytes, world.clock.monotonic_ms(), may_drain)


def queue_of(world, partition):
    return world.accumulator.topics["t"].queues[partition]


def test_records_of_a_partition_share_a_batch(twin):
    world = SenderWorld()
    first, second = world.send(b"a", 0), world.send(b"b", 0)
    other = world.send(b"c", 1)
    assert first.batch_result is second.batch_result
    assert (first.batch_index, second.batch_index) == (0, 1)
    assert other.batch_result is not first.batch_result
    assert world.accumulator.incomplete_count == 2


def test_a_batch_that_is_full_is_followed_by_another(twin):
    world = SenderWorld(batch_size=300)
    results = [world.send(b"x" * 100, 0).batch_result for _ in range(4)]
    assert results[0] is results[1]
    assert results[2] is results[3]
    assert results[1] is not results[2]


def test_memory_for_a_batch_that_another_thread_began_meanwhile_goes_back(twin, monkeypatch):
    world = SenderWorld(batch_size=300)
    allocate = world.pool.allocate

    def allocate_late(size, timeout_ms):
        buffer = allocate(size, timeout_ms)
        monkeypatch.setattr(world.pool, "allocate", allocate)
        others.append(world.send(b"first", 0))
        return buffer

    others = []
    monkeypatch.setattr(world.pool, "allocate", allocate_late)
    future = world.send(b"second", 0)
    assert [one.batch_result for one in others] == [future.batch_result]
    assert world.pool.available == world.pool.total - 300
    world.settle()
    assert world.values(0) == [b"first", b"second"]
    world.check_memory()


def test_a_record_larger_than_the_batch_size_gets_a_batch_of_its_own_size(twin):
    world = SenderWorld(batch_size=100, memory=1000)
    world.send(b"x" * 500, 0)
    assert world.pool.available < 500
    world.settle()
    assert world.values(0) == [b"x" * 500]
    world.check_memory()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"max_request_size": 400}, "max.request.size"),
        ({"memory": 400, "batch_size": 300}, "buffer.memory"),
    ],
)
def test_a_record_that_no_batch_can_hold_is_refused_with_both_sizes(twin, options, named):
    world = SenderWorld(**options)
    with pytest.raises(RecordTooLargeError, match=named) as caught:
        world.send(b"x" * 500, 0)
    assert caught.value.limit == 400
    assert caught.value.size > 500
    world.check_memory()


def test_a_batch_is_ready_when_it_has_lingered():
    world = SenderWorld(linger_ms=5)
    world.send(b"a", 0)
    assert ready_nodes(world) == []
    assert world.accumulator.next_poll_ms == 5
    world.clock.advance(5)
    assert ready_nodes(world) == [1]


def test_without_linger_a_batch_is_ready_at_once_and_stays_open_until_it_is_drained():
    world = SenderWorld(linger_ms=0)
    world.send(b"a", 0)
    assert ready_nodes(world) == [1]
    world.send(b"b", 0)
    (batch,) = drain(world)
    assert batch.record_count == 2


def test_a_full_batch_is_ready_at_once():
    world = SenderWorld(linger_ms=1000, batch_size=200)
    world.send(b"x" * 100, 0)
    assert ready_nodes(world) == []
    world.send(b"x" * 100, 0)
    assert ready_nodes(world) == [1]
    assert [batch.record_count for batch in drain(world)] == [1]
    assert ready_nodes(world) == []  # the second one lingers


def test_when_memory_is_short_nothing_lingers():
    world = SenderWorld(linger_ms=1000, batch_size=1000, memory=2000)
    world.send(b"a" * 500, 0)
    world.send(b"b", 1)
    world.engine.meanwhile = [lambda: found.extend(ready_nodes(world))]
    found = []
    with pytest.raises(BufferExhaustedError):
        world.send(b"c" * 900, 0)
    assert sorted(found) == [1, 2]


def test_sealing_all_ends_the_linger_of_what_is_there_and_of_nothing_else():
    world = SenderWorld(linger_ms=1000)
    world.send(b"a", 0)
    assert len(world.accumulator.seal_all()) == 1
    world.send(b"b", 1)
    assert ready_nodes(world) == [1]


class TestWaking:
    """The I/O thread is woken when it has something new to know, and not once per record."""

    def test_a_timer_that_comes_first_wakes(self):
        world = SenderWorld(linger_ms=5)
        world.send(b"a", 0)
        assert world.engine.wakes == 1
        world.send(b"b", 0)
        world.clock.advance(1)
        world.send(b"c", 1)  # lingers for longer: the timer that is set comes first anyway
        assert world.engine.wakes == 1

    def test_the_first_ready_partition_of_a_node_wakes(self):
        world = SenderWorld(partitions=4, linger_ms=0)
        for partition in (0, 2, 0, 2):  # of node 1
            world.send(b"a", partition)
        assert world.engine.wakes == 1
        world.send(b"a", 1)  # of node 2
        assert world.engine.wakes == 2

    def test_a_full_batch_does_not_wait_for_the_memory_of_the_next_one(self):
        world = SenderWorld(linger_ms=1000, batch_size=300, memory=300)
        world.send(b"x" * 150, 0)
        wakes = world.engine.wakes
        world.engine.meanwhile = [world.settle]
        world.send(b"x" * 150, 0)
        assert world.engine.wakes > wakes
        assert world.values(0) == [b"x" * 150]


class TestDraining:
    def test_a_request_holds_one_batch_of_a_partition(self):
        world = SenderWorld(partitions=4, batch_size=200)
        for partition in (0, 0, 2):
            world.send(b"x" * 100, partition)
        world.accumulator.seal_all()
        assert [batch.queue.partition for batch in drain(world)] == [0, 2]
        assert [batch.queue.partition for batch in drain(world)] == [0]
        assert drain(world) == []

    def test_a_request_is_not_larger_than_allowed(self):
        world = SenderWorld(partitions=6, batch_size=200)
        for partition in (0, 2, 4):
            world.send(b"x" * 100, partition)
        world.accumulator.seal_all()
        assert [batch.queue.partition for batch in drain(world, max_bytes=400)] == [0, 2]
        assert [batch.queue.partition for batch in drain(world, max_bytes=1)] == [4]

    def test_partitions_take_turns(self):
        world = SenderWorld(partitions=6, batch_size=200, memory=5000)
        for partition in (0, 2, 4) * 3:
            world.send(b"x" * 100, partition)
        world.accumulator.seal_all()
        order = [drain(world, max_bytes=1)[0].queue.partition for _ in range(9)]
        assert order == [0, 2, 4] * 3

    def test_a_refused_partition_is_not_asked_about_again_until_something_changed(self):
        world = SenderWorld(linger_ms=0)
        world.send(b"a", 0)
        asked = []
        drain(world, may_drain=lambda queue, batch: asked.append(batch))
        assert ready_nodes(world) == []
        world.send(b"b" * 250, 0)
        assert ready_nodes(world) == []
        world.accumulator.reevaluate([queue_of(world, 0)], 0)
        assert ready_nodes(world) == [1]
        assert len(asked) == 1

    def test_it_looks_at_ready_partitions_only(self):
        world = SenderWorld(partitions=1000, linger_ms=5, batch_size=200, memory=10**6)
        for partition in range(1000):
            world.send(b"lingers", partition)
        world.send(b"x" * 150, 500)  # partition 500 has a full batch
        asked = []
        drained = drain(world, may_drain=lambda queue, batch: asked.append(queue) or True)
        assert [queue.partition for queue in asked] == [500]
        assert [batch.queue.partition for batch in drained] == [500]

    def test_what_is_put_back_keeps_the_order_of_creation(self):
        world = SenderWorld(batch_size=200, linger_ms=0)
        for _ in range(4):
            world.send(b"x" * 100, 0)
        batches = [drain(world)[0] for _ in range(3)]
        world.accumulator.take_off_wire(batches)
        for batch in (batches[1], batches[0], batches[2]):
            world.accumulator.put_back(batch, 0)
        assert [batch.position for batch in queue_of(world, 0).waiting] == [0, 1, 2, 3]


class TestLeaders:
    def test_a_partition_without_a_leader_is_ready_for_nobody(self):
        world = SenderWorld(linger_ms=0)
        world.leaders = [-1, 2]
        world.tell_leaders()
        world.send(b"a", 0)
        assert ready_nodes(world) == [-1]
        assert drain(world, node=1) == []

    def test_a_ready_partition_moves_with_its_leader(self):
        world = SenderWorld(linger_ms=0)
        world.send(b"a", 0)
        world.move_leader(0)
        world.tell_leaders()
        assert ready_nodes(world) == [2]
        assert len(drain(world, node=2)) == 1

    def test_a_new_leader_need_not_wait_for_the_back_off_from_the_old_one(self):
        world = SenderWorld(linger_ms=0)
        world.send(b"a", 0)
        (batch,) = drain(world)
        batch.attempts = 1
        world.accumulator.take_off_wire([batch])
        world.accumulator.put_back(batch, due_ms=1000)
        world.accumulator.reevaluate([batch.queue], 0)
        assert ready_nodes(world) == []
        world.move_leader(0)
        world.tell_leaders()
        assert ready_nodes(world) == [2]

    def test_new_partitions_can_be_sent_to(self):
        world = SenderWorld(partitions=1)
        world.leaders = [1, 2, 1]
        world.tell_leaders()
        assert world.accumulator.topics["t"].partition_count == 3
        world.send(b"a", 2)

    def test_a_topic_that_the_metadata_loses_keeps_its_batches(self):
        world = SenderWorld(linger_ms=0)
        world.send(b"a", 0)
        snapshot = world.engine.metadata.snapshot.without_topics(["t"])
        world.accumulator.update_metadata(snapshot)
        assert "t" not in world.accumulator.topics
        assert ready_nodes(world) == [-1]
        world.settle()
        assert world.values(0) == [b"a"]

    def test_an_unknown_topic_has_no_queues(self):
        assert SenderWorld().accumulator.add_topic("tea") is None


class TestSticky:
    def test_records_without_a_key_stay_on_a_partition_until_a_batch_is_full(self):
        world = SenderWorld(partitions=50, batch_size=300, memory=10**5)
        for number in range(30):
            world.send(b"%02d" % number + b"x" * 100)
        partitions = [partition for partition, _, _ in world.futures]
        runs = [len(list(group)) for _, group in itertools.groupby(partitions)]
        # Two records fill a batch to less than 300 bytes, so it takes a second one to move on.
        assert set(runs[:-1]) <= {4, 8}
        assert len(set(partitions)) > 3

    def test_bytes_of_sent_batches_count_not_the_batches(self):
        world = SenderWorld(partitions=50, batch_size=1000, linger_ms=0)
        for _ in range(6):
            world.send(b"x" * 100)
            world.settle()
        assert len({partition for partition, _, _ in world.futures}) == 1
        for _ in range(6):
            world.send(b"x" * 100)
            world.settle()
        assert len({partition for partition, _, _ in world.futures}) == 2


class TestExpiry:
    def test_a_batch_expires_by_its_first_records_age(self):
        world = SenderWorld(delivery_timeout_ms=100)
        world.connections[1].is_ready = False
        world.send(b"a", 0)
        world.clock.advance(60)
        world.send(b"b", 0)
        assert world.accumulator.take_expired(world.clock.monotonic_ms()) == []
        world.clock.advance(40)
        (batch,) = world.accumulator.take_expired(world.clock.monotonic_ms())
        assert batch.record_count == 2
        assert queue_of(world, 0).open_batch is None
        assert not queue_of(world, 0).waiting

    def test_the_sender_is_polled_when_the_next_one_is_due(self):
        world = SenderWorld(delivery_timeout_ms=100, linger_ms=0)
        world.send(b"a", 0)
        drain(world)
        world.clock.advance(30)
        world.send(b"b", 0)
        drain(world)
        assert world.accumulator.next_poll_ms == 100
        world.clock.advance(70)
        assert len(world.accumulator.take_expired(100)) == 1
        assert world.accumulator.next_poll_ms == 130

    def test_an_idle_partition_has_no_timer(self):
        world = SenderWorld(delivery_timeout_ms=100, linger_ms=0)
        world.send(b"a", 0)
        world.settle()
        world.clock.advance(100)
        world.poll()
        assert world.accumulator.next_poll_ms == float("inf")


class TestErrors:
    def test_malformed_headers_cost_nothing(self, twin):
        world = SenderWorld()
        topic = world.accumulator.topics["t"]
        for _ in range(2):  # with and without an open batch
            with pytest.raises((TypeError, ValueError, AttributeError)):
                world.accumulator.append(topic, 0, 1, b"k", b"v", [("a", "not bytes")], 0)
            world.send(b"fine", 0)
        world.settle()
        world.check_memory()

    def test_a_callback_does_not_wait_for_memory(self):
        world = SenderWorld(batch_size=300, memory=300)
        world.send(b"a", 0)
        world.engine.is_io_thread = True
        with pytest.raises(BufferExhaustedError, match="callback"):
            world.send(b"b", 1)
        assert world.engine.clock.monotonic_ms() == 0

    def test_nothing_is_appended_after_close(self):
        world = SenderWorld()
        world.send(b"a", 0)
        world.accumulator.close()
        with pytest.raises(IllegalStateError, match="closed"):
            world.send(b"b", 0)
        world.settle()
        assert world.values(0) == [b"a"]
        world.check_memory()

    def test_a_caller_that_waits_for_memory_when_the_producer_closes_gets_an_error(self):
        world = SenderWorld(batch_size=300, memory=300)
        world.send(b"a", 0)

        def close():
            world.accumulator.close()
            world.pool.close()

        world.engine.meanwhile = [close]
        with pytest.raises(IllegalStateError, match="closed"):
            world.send(b"b", 1)


def test_many_threads_append_and_nothing_is_lost_torn_or_twice(twin):
    world = SenderWorld(partitions=4, batch_size=500, memory=10**6, linger_ms=0)
    topic = world.accumulator.topics["t"]
    appended = [[] for _ in range(8)]

    def send(thread):
        for number in range(300):
            value = b"%d-%d" % (thread, number)
            world.accumulator.append(topic, number % 4, 1000, None, value, (), 0)
            appended[thread].append(value)

    with switching():
        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            world.settle(rounds=10**6)
        for thread in threads:
            thread.join()
    world.settle(rounds=10**6)
    written = [value for index in range(4) for value in world.values(index)]
    assert sorted(written) == sorted(value for values in appended for value in values)
    for index in range(4):  # in each thread's own order
        for thread in range(8):
            mine = [v for v in world.values(index) if v.startswith(b"%d-" % thread)]
            assert mine == [v for v in appended[thread] if int(v.split(b"-")[1]) % 4 == index]
    world.check_memory()
