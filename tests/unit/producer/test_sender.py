"""The sender between a real accumulator and a model of a cluster: requests, retries, leaders."""

import pytest

from pyclient.errors import (
    Cancelled,
    KafkaConnectionError,
    KafkaTimeoutError,
    NotEnoughReplicasError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from pyclient.protocol.messages.current_leader import LeaderIdAndEpoch, NodeEndpoint
from pyclient.protocol.messages.produce import ProduceResponse
from tests.support.sender_steps import exchange, make_known, respond, send_batches, sent_batches
from tests.support.sender_world import SenderWorld


def test_one_request_carries_the_batches_of_all_ready_partitions_of_a_node():
    world = SenderWorld(partitions=4)
    for partition in range(4):
        world.send(b"a", partition)
    world.accumulator.seal_all()
    world.poll()
    assert sent_batches(world, 1) == [(0, 0, 0, 1), (2, 0, 0, 1)]
    assert sent_batches(world, 2) == [(1, 0, 0, 1), (3, 0, 0, 1)]
    (unsent,) = world.connections[1].requests
    assert (unsent.request.acks, unsent.request.timeout_ms) == (-1, 500)
    assert unsent.request.topic_data[0].topic_id != bytes(16)
    assert unsent.request.topic_data[0].name == "t"


def test_at_most_so_many_requests_are_in_flight_per_node():
    world = SenderWorld(in_flight_max=3)
    make_known(world)
    send_batches(world, 5)
    assert len(world.connections[1].requests) == 3
    exchange(world)
    world.poll()
    assert len(world.connections[1].requests) == 3


def test_batches_stay_open_while_their_node_is_not_ready():
    world = SenderWorld(linger_ms=0)
    world.connections[1].is_ready = False
    first = world.send(b"a", 0)
    world.poll()
    second = world.send(b"b", 0)
    assert second.batch_result is first.batch_result
    world.connections[1].is_ready = True
    world.poll()
    assert sent_batches(world) == [(0, 0, 0, 2)]


def test_nothing_is_sent_before_there_is_a_producer_id():
    world = SenderWorld(linger_ms=0)
    world.sequences.identity = type(world.sequences.identity)(-1, -1)
    world.send(b"a", 0)
    world.poll()
    assert not world.connections[1].requests


def test_a_partition_without_a_leader_asks_for_metadata_once_per_snapshot():
    world = SenderWorld(linger_ms=0)
    world.leaders = [-1, 2]
    world.tell_leaders()
    world.send(b"a", 0)
    for _ in range(3):
        world.poll()
    assert world.engine.metadata.update_requests == 1
    world.tell_leaders()
    world.poll()
    assert world.engine.metadata.update_requests == 2


def test_an_acknowledgement_completes_the_records_and_frees_their_memory():
    world = SenderWorld()
    futures = [world.send(b"%d" % number, 0) for number in range(3)]
    world.settle()
    assert [future.get().offset for future in futures] == [0, 1, 2]
    world.check_memory()


def test_without_acks_records_are_done_when_the_bytes_have_left():
    world = SenderWorld(idempotent=False, acks=0)
    future = world.send(b"a", 0)
    world.accumulator.seal_all()
    world.poll()
    (unsent,) = world.connections[1].requests
    assert not unsent.expects_response
    exchange(world)
    assert future.get().offset == -1
    world.check_memory()


class TestRetries:
    def test_a_passing_error_is_retried_after_a_growing_pause(self):
        world = SenderWorld()
        future = world.send(b"a", 0)
        world.accumulator.seal_all()
        world.poll()
        pauses = []
        for _ in range(3):
            exchange(world, error_code=NotEnoughReplicasError.code)
            asked_ms = world.clock.monotonic_ms()
            while not world.connections[1].requests:
                world.clock.advance(1)
                world.poll()
            pauses.append(world.clock.monotonic_ms() - asked_ms)
        assert 8 <= pauses[0] <= 12
        assert 16 <= pauses[1] <= 24
        assert 32 <= pauses[2] <= 48
        world.settle()
        assert future.get().offset == 0
        assert world.metrics.snapshot()["producer-metrics"]["record-retry-total"] == 3

    def test_an_error_that_does_not_pass_fails_the_records(self):
        world = SenderWorld()
        future = world.send(b"a", 0)
        world.accumulator.seal_all()
        world.poll()
        exchange(world, error_code=TopicAuthorizationError.code)
        with pytest.raises(TopicAuthorizationError, match="t-0"):
            future.get()
        world.check_memory()

    def test_the_brokers_message_is_in_the_error(self):
        world = SenderWorld()
        future = world.send(b"a", 0)
        world.accumulator.seal_all()
        world.poll()
        respond(world, 1, error_code=44, error_message="names start with a letter")
        assert "t-0: names start with a letter (POLICY_VIOLATION" in str(future.exception)

    def test_retries_end_by_their_number(self):
        world = SenderWorld(retries=1)
        future = world.send(b"a", 0)
        world.accumulator.seal_all()
        world.poll()
        exchange(world, error_code=NotEnoughReplicasError.code)
        world.clock.advance(50)
        world.poll()
        exchange(world, error_code=NotEnoughReplicasError.code)
        assert isinstance(future.exception, NotEnoughReplicasError)
        world.check_memory()

    def test_retries_end_by_time_with_the_last_error_in_the_message(self):
        world = SenderWorld(delivery_timeout_ms=100)
        future = world.send(b"a", 0)
        world.accumulator.seal_all()
        world.poll()
        exchange(world, error_code=NotEnoughReplicasError.code)
        world.connections[1].is_ready = False
        world.clock.advance(100)
        world.poll()
        with pytest.raises(KafkaTimeoutError, match=r"100 ms \(delivery.timeout.ms\).*replicas"):
            future.get()
        world.check_memory()

    def test_what_was_never_sent_says_what_is_wrong_with_the_leader(self):
        world = SenderWorld(delivery_timeout_ms=100)
        future = world.send(b"a", 0)
        world.connections[1].is_ready = False
        world.clock.advance(100)
        world.poll()
        with pytest.raises(KafkaTimeoutError, match="node 1, takes no requests: a cable is loose"):
            future.get()

    @pytest.mark.parametrize(
        ("error", "kept"),
        [
            (KafkaConnectionError("it broke"), True),
            (KafkaTimeoutError("never sent"), True),
            (UnsupportedVersionError(), False),
            (Cancelled("closed"), False),
        ],
    )
    def test_a_request_that_fails_as_a_whole_is_retried_unless_that_is_in_vain(self, error, kept):
        world = SenderWorld()
        future = world.send(b"a", 0)
        world.accumulator.seal_all()
        world.poll()
        world.disconnect(1, error)
        assert future.is_done != kept
        if kept:
            world.settle()
            assert future.get().offset == 0
        world.check_memory()

    def test_a_partition_that_the_answer_leaves_out_is_retried(self):
        world = SenderWorld()
        future = world.send(b"a", 0)
        world.accumulator.seal_all()
        world.poll()
        world.connections[1].requests.popleft().on_done(ProduceResponse(), 0.0)
        assert not future.is_done
        world.settle()
        assert world.values(0) == [b"a"]

    def test_five_batches_that_fail_together_are_written_in_their_order(self):
        world = SenderWorld()
        make_known(world)
        send_batches(world, 5)
        world.disconnect(1)
        world.settle()
        world.check_delivery()
        assert len(world.values(0)) == 6

    def test_an_answer_that_was_lost_does_not_double_records(self):
        world = SenderWorld()
        make_known(world)
        futures = send_batches(world, 5)
        for _ in range(5):
            world.serve(1)
        world.disconnect(1)
        world.settle()
        world.check_delivery()
        assert [future.get().offset for future in futures] == [1, 2, 3, 4, 5]

    def test_order_holds_without_idempotence_if_one_request_is_in_flight(self):
        world = SenderWorld(idempotent=False, in_flight_max=1)
        send_batches(world, 3)
        exchange(world, error_code=NotEnoughReplicasError.code)
        world.settle()
        world.check_delivery()


class TestLeaders:
    def test_a_moved_leader_refreshes_the_metadata_and_gets_the_batch(self):
        world = SenderWorld()
        future = world.send(b"a", 0)
        world.accumulator.seal_all()
        world.move_leader(0)
        world.poll()
        exchange(world)
        assert world.engine.metadata.update_requests == 1
        world.tell_leaders()
        world.poll()
        assert sent_batches(world, 2) == [(0, 0, 0, 1)]  # at once: another leader, no back-off
        exchange(world, 2)
        assert future.get().offset == 0

    def test_a_new_leader_named_in_the_answer_is_used_at_once(self):
        world = SenderWorld()
        world.send(b"a", 0)
        world.accumulator.seal_all()
        world.poll()
        respond(
            world,
            1,
            error_code=6,
            base_offset=-1,
            current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=1),
            node_endpoints=[NodeEndpoint(node_id=2, host="b", port=1)],
        )
        partition = world.engine.metadata.snapshot.partition("t", 0)
        assert (partition.leader, partition.leader_epoch) == (2, 1)


class TestShortMemory:
    """Two buffers of 300 bytes, in which a record takes but 70."""

    def test_batches_with_few_records_give_their_buffers_back_when_they_are_sent(self):
        world = SenderWorld(linger_ms=0, memory=600)
        world.send(b"a", 0)
        world.send(b"b", 1)
        world.poll()
        assert world.pool.available > 300  # the first was sent, and the second one found room
        assert len(sent_batches(world, 1)) == len(sent_batches(world, 2)) == 1
        world.settle()
        assert world.pool.available == 600
        assert [log.records[0].value for log in world.logs] == [b"a", b"b"]

    def test_what_is_sent_again_is_still_there_and_counts_once(self):
        world = SenderWorld(linger_ms=0, memory=300)
        world.send(b"a", 0)
        world.poll()
        held = 300 - world.pool.available
        world.serve(1, NotEnoughReplicasError.code)
        world.answer(1)
        world.clock.advance(100)
        world.poll()
        assert 300 - world.pool.available == held < 100
        world.settle()
        assert world.logs[0].records[0].value == b"a"
        assert world.pool.available == 300

    def test_with_memory_to_spare_nothing_is_copied(self):
        world = SenderWorld(linger_ms=0, memory=3000)
        world.send(b"a", 0)
        world.poll()
        assert world.pool.available == 2700
