"""What becomes of batches: splits, record errors, expiry on the wire, lost places."""

import pytest

from pyclient.errors import (
    InvalidRecordError,
    KafkaTimeoutError,
    NotEnoughReplicasError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    TopicAuthorizationError,
)
from pyclient.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
)
from tests.support.sender_steps import exchange, make_known, respond, send_batches
from tests.support.sender_world import SenderWorld


class TestTooLarge:
    @pytest.mark.parametrize("idempotent", [True, False])
    @pytest.mark.parametrize("codec", [0, 1])
    def test_a_refused_batch_is_split_until_its_parts_fit(self, twin, idempotent, codec):
        world = SenderWorld(idempotent=idempotent, codec=codec, batch_size=600)
        futures = [world.send(b"%02d" % number + b"x" * 20, 0) for number in range(16)]
        world.batch_bytes_max = 160
        world.settle()
        world.check_delivery()
        assert [future.get().offset for future in futures] == list(range(16))
        world.check_memory()
        assert world.metrics.snapshot()["producer-metrics"]["batch-split-total"] > 0

    def test_what_follows_a_split_batch_waits_for_its_parts(self):
        world = SenderWorld(batch_size=300)
        make_known(world)
        world.batch_bytes_max = 200
        for number in range(24):
            world.send(b"%02d" % number + b"x" * 20, 0)
        world.settle()
        world.check_delivery()
        assert len(world.values(0)) == 25

    def test_a_single_record_that_is_refused_fails_with_its_size(self):
        world = SenderWorld()
        future = world.send(b"x" * 100, 0)
        world.batch_bytes_max = 50
        world.settle()
        with pytest.raises(RecordTooLargeError, match=r"max\.message\.bytes") as caught:
            future.get()
        assert caught.value.size > 100
        world.check_memory()

    def test_callbacks_of_a_split_batch_run_once_each_in_order(self):
        world = SenderWorld(batch_size=600)
        offsets = []
        for number in range(12):
            future = world.send(b"%02d" % number + b"x" * 20, 0)
            future.add_callback(lambda value: offsets.append(value.offset))
        world.batch_bytes_max = 160
        world.settle()
        assert offsets == list(range(12))


class TestRecordErrors:
    def test_the_records_that_broke_a_rule_say_so_and_the_others_say_why_they_failed_too(self):
        world = SenderWorld()
        futures = [world.send(b"%d" % number, 0) for number in range(3)]
        world.accumulator.seal_all()
        world.poll()
        respond(
            world,
            1,
            error_code=InvalidRecordError.code,
            error_message="a compacted topic needs keys",
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")
            ],
        )
        assert [str(future.exception).split(" (")[0] for future in futures] == [
            "t-0: a compacted topic needs keys",
            "no key",
            "t-0: a compacted topic needs keys",
        ]


class TestExpiryOnTheWire:
    """Time runs out while a request is under way."""

    @pytest.fixture
    def world(self):
        world = SenderWorld(delivery_timeout_ms=100)
        make_known(world)
        return world

    def test_the_records_fail_but_their_memory_is_held_until_the_request_is_over(self, world):
        (future,) = send_batches(world, 1)
        world.clock.advance(100)
        world.poll()
        with pytest.raises(KafkaTimeoutError, match="node 1 has not answered"):
            future.get()
        assert world.pool.available < world.pool.total
        world.disconnect(1)
        world.check_memory()

    def test_a_late_acknowledgement_keeps_the_numbering_whole(self, world):
        send_batches(world, 1)
        world.clock.advance(100)
        world.poll()
        (blocked,) = send_batches(world, 1)
        assert len(world.connections[1].requests) == 1  # unresolved: nothing new is numbered
        exchange(world)
        world.settle()
        assert blocked.get().offset == 2
        assert world.sequences.identity.epoch == 0
        world.check_delivery()

    def test_a_lost_request_bumps_the_epoch(self, world):
        send_batches(world, 1)
        world.clock.advance(100)
        world.poll()
        world.disconnect(1)
        (future,) = send_batches(world, 1)
        world.settle()
        assert future.get().offset == 1
        assert world.sequences.identity.epoch == 1


def test_a_batch_that_the_broker_does_not_know_again_fails_at_once_if_a_later_one_is_written():
    world = SenderWorld()
    make_known(world)
    first, second = send_batches(world, 2)
    world.serve(1, NotEnoughReplicasError.code, after=True)
    world.serve(1)
    world.answer(1)
    world.answer(1)
    _, last = world.logs[0].producers[1]
    while len(last) > 1:
        last.popleft()  # the broker knows only the second one again
    world.settle()
    assert isinstance(first.exception, OutOfOrderSequenceError)  # written or not: who knows
    assert second.get().offset == 2
    assert world.clock.monotonic_ms() < 100
    (third,) = send_batches(world, 1)
    world.settle()
    assert third.get().offset == 3
    world.check_delivery()


def test_a_duplicate_is_written_at_an_offset_that_nobody_knows_any_more():
    world = SenderWorld()
    make_known(world)
    (future,) = send_batches(world, 1)
    respond(world, 1, error_code=46, base_offset=-1)
    assert future.get().offset == -1


def test_a_broker_that_forgot_the_producer_does_not_stop_it():
    world = SenderWorld()
    make_known(world)
    log = world.logs[0]
    (producer,) = log.producers
    epoch, _ = log.producers[producer]
    log.producers[producer] = (epoch, type(log.producers[producer][1])([(500, 1, 0)], 5))
    future = world.send(b"next", 0)
    world.settle()
    assert future.get().offset == 1
    assert world.sequences.identity.epoch == 1


def test_a_callback_may_send_and_finds_the_memory_of_its_own_batch_free():
    world = SenderWorld(batch_size=300, memory=300, linger_ms=0)
    sent = []
    world.send(b"a", 0).add_callback(lambda value: sent.append(world.send(b"b", 0)))
    world.engine.is_io_thread = True
    world.settle()
    assert sent[0].get().offset == 1


def test_aborting_fails_all_that_waits_and_takes_no_more():
    world = SenderWorld()
    waiting = world.send(b"a", 0)
    world.outcomes.abort(TopicAuthorizationError("no"))
    assert waiting.failed()
    with pytest.raises(TopicAuthorizationError):
        world.send(b"b", 0)
    world.check_memory()


def test_an_idle_sender_wants_nothing():
    world = SenderWorld(linger_ms=0, delivery_timeout_ms=100)
    make_known(world)
    world.clock.advance(100)
    assert world.poll() >= 30_000  # the next window of the metrics
