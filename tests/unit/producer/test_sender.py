"""The sender between a real accumulator and a model of a cluster: retries, splits, limits."""

import pytest

from pyclient.errors import (
    Cancelled,
    InvalidRecordError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NotEnoughReplicasError,
    RecordTooLargeError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from pyclient.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from pyclient.records.batch import RecordBatch
from tests.support.sender_world import SenderWorld


def respond(world, node, **fields):
    """Answer the oldest request of a node, whatever its batches are, with these fields."""
    unsent = world.connections[node].requests.popleft()
    (topic,) = unsent.request.topic_data
    endpoints = fields.pop("node_endpoints", [])
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=one.index, **fields)
                    for one in topic.partition_data
                ],
            )
        ],
        node_endpoints=endpoints,
    )
    unsent.on_done(response, world.clock.monotonic_ms())


def exchange(world, node=1, error_code=0):
    world.serve(node, error_code)
    world.answer(node)


def sent_batches(world, node=1):
    """The batches on their way to a node: (partition, epoch, base sequence, record count)."""
    found = []
    for unsent in world.connections[node].requests:
        for topic in unsent.request.topic_data:
            for one in topic.partition_data:
                batch = RecordBatch(b"".join(one.records))
                found.append(
                    (one.index, batch.producer_epoch, batch.base_sequence, batch.record_count)
                )
    return found


def make_known(world, partition=0):
    """Have a first record written, so that the broker knows the producer."""
    world.send(b"first", partition)
    world.settle()


def send_batches(world, count, partition=0):
    """Fill so many batches of one record each, and have them drained."""
    futures = []
    for _ in range(count):
        futures.append(world.send(b"%d" % len(world.futures), partition))
        world.accumulator.seal_all()
    world.poll()
    return futures


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
    assert second._result is first._result
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


def test_a_batch_that_the_broker_does_not_know_again_is_written_if_a_later_one_is():
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
    assert (first.get().offset, second.get().offset) == (-1, 2)
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
