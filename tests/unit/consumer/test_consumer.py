"""Whole consumers on a scripted network: what only time shows."""

import inspect

import pytest

from pyclient import KafkaConsumer, TopicPartition
from pyclient.errors import (
    IllegalStateError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    RecordDeserializationError,
    WakeupError,
)
from pyclient.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.leave_group import LeaveGroupRequest
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from pyclient.records.control import EndTransactionMarker, build_end_transaction_marker
from tests.support.consumer_parts import batch_at

P0 = TopicPartition("orders", 0)


def values(polled):
    return [record.value for records in polled.values() for record in records]


def test_a_poll_waits_no_longer_than_told_and_returns_what_is_there(network, new_consumer):
    consumer = new_consumer("orders")
    assert values(consumer.poll(timeout_ms=10_000)) == [b"a", b"b", b"c"]
    before_ms = network.clock.monotonic_ms()
    assert consumer.poll(timeout_ms=700) == {}
    assert network.clock.monotonic_ms() - before_ms == pytest.approx(700, abs=1)


def test_heartbeats_go_on_while_the_program_is_busy(network, broker, new_consumer):
    consumer = new_consumer("orders")
    consumer.poll(timeout_ms=10_000)
    network.run_for(60_000)
    assert 18 <= len(broker.received(HeartbeatRequest)) <= 20
    assert consumer.assignment() == {P0}


def test_an_idle_member_sends_little(network, broker, new_consumer):
    consumer = new_consumer("orders", request_timeout_ms=300_000)
    consumer.poll(timeout_ms=10_000)
    network.run_for(1_000)
    fetches = len(broker.received(FetchRequest))
    network.run_for(60_000)
    assert len(broker.received(FetchRequest)) == fetches  # the one that waits at the broker


def test_a_program_that_does_not_poll_leaves_and_is_back_by_its_next_poll(
    network, broker, new_consumer
):
    consumer = new_consumer("orders", max_poll_interval_ms=20_000, enable_auto_commit=False)
    consumer.poll(timeout_ms=10_000)
    network.run_for(60_000)
    (leave,) = broker.received(LeaveGroupRequest)
    assert "max.poll.interval.ms" in leave.members[0].reason
    assert len(broker.received(JoinGroupRequest)) == 1
    assert values(consumer.poll(timeout_ms=10_000)) == [b"a", b"b", b"c"]
    assert len(broker.received(JoinGroupRequest)) == 2


def test_a_program_that_waits_in_a_poll_is_not_late(network, broker, new_consumer):
    consumer = new_consumer("orders", max_poll_interval_ms=20_000)
    consumer.poll(timeout_ms=10_000)
    assert consumer.poll(timeout_ms=120_000) == {}
    assert broker.received(LeaveGroupRequest) == []


def test_a_slow_loop_over_records_is_not_late_either(network, broker, new_consumer):
    consumer = new_consumer("orders", max_poll_interval_ms=20_000, consumer_timeout_ms=100)
    for _ in consumer:
        network.run_for(15_000)
    assert broker.received(LeaveGroupRequest) == []
    assert consumer.assignment() == {P0}


def test_automatic_commits_come_in_intervals_and_at_the_end(network, broker, group, new_consumer):
    consumer = new_consumer("orders", max_poll_records=2, auto_commit_interval_ms=5_000)
    consumer.poll(timeout_ms=1_000)
    network.run_for(4_000)
    consumer.poll(timeout_ms=0)
    assert group.committed == -1
    network.run_for(5_000)
    consumer.poll(timeout_ms=10)
    assert group.committed == 3
    commits = len(broker.received(OffsetCommitRequest))
    consumer.close()
    assert len(broker.received(OffsetCommitRequest)) == commits + 1


def test_a_slow_loop_commits_as_it_goes(network, group, new_consumer):
    consumer = new_consumer("orders", auto_commit_interval_ms=5_000)
    seen = []
    for record in consumer:
        network.run_for(6_000)
        seen.append((record.offset, group.committed))
        if record.offset == 2:
            break
    # When the loop asks for a record, it is done with the ones before.
    assert seen == [(0, -1), (1, 1), (2, 2)]


def test_a_fetch_that_is_never_answered_is_given_up_and_repeated(network, broker, new_consumer):
    consumer = new_consumer("orders", request_timeout_ms=5_000)
    consumer.poll(timeout_ms=1_000)
    fetches = len(broker.received(FetchRequest))
    network.run_for(12_000)
    assert len(broker.received(FetchRequest)) > fetches


def test_closing_ends_in_time_though_the_coordinator_says_nothing(network, broker, new_consumer):
    consumer = new_consumer("orders")
    consumer.poll(timeout_ms=10_000)
    broker.on(OffsetCommitRequest, None)
    broker.on(LeaveGroupRequest, None)
    before_ms = network.clock.monotonic_ms()
    consumer.close(timeout_ms=3_000)
    assert network.clock.monotonic_ms() - before_ms <= 5_000


def test_closing_ends_in_time_though_all_brokers_are_gone(network, broker, new_consumer):
    consumer = new_consumer("orders")
    consumer.poll(timeout_ms=10_000)
    broker.refuse_connections()
    before_ms = network.clock.monotonic_ms()
    consumer.close()
    assert network.clock.monotonic_ms() - before_ms <= 32_000  # request_timeout_ms, and the end


def test_a_call_that_is_not_answered_ends_in_time(network, broker, new_consumer):
    consumer = new_consumer("orders", default_api_timeout_ms=2_000)
    consumer.poll(timeout_ms=10_000)
    broker.on(OffsetCommitRequest, None)
    before_ms = network.clock.monotonic_ms()
    with pytest.raises(KafkaTimeoutError, match=r"node 1 .* has not answered for 2000 ms"):
        consumer.commit()
    assert network.clock.monotonic_ms() - before_ms <= 2_200


def test_a_wakeup_is_for_the_next_call_that_waits(new_consumer):
    consumer = new_consumer("orders")
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(timeout_ms=1_000)
    assert values(consumer.poll(timeout_ms=1_000)) == [b"a", b"b", b"c"]


def test_an_iteration_is_ended_by_close_and_interrupted_by_a_wakeup(new_consumer):
    consumer = new_consumer("orders")
    records = iter(consumer)
    assert next(records).value == b"a"
    consumer.wakeup()
    with pytest.raises(WakeupError):
        next(records)
    records = iter(consumer)
    assert next(records).value == b"b"
    consumer.close()
    assert list(records) == []


def test_an_iterator_goes_on_after_an_error(new_consumer):
    consumer = new_consumer("orders", value_deserializer=int_or_skip)
    records = iter(consumer)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        next(records)
    with pytest.raises(RecordDeserializationError) as caught:
        next(records)
    consumer.seek(P0, caught.value.offset + 1)
    with pytest.raises(RecordDeserializationError, match="offset 1 "):
        next(records)
    consumer.seek(P0, 2)
    with pytest.raises(RecordDeserializationError, match="offset 2 "):
        next(records)


def int_or_skip(data):
    return int(data)


def test_a_marker_behind_records_that_wait_in_an_iteration_is_not_committed(
    network, broker, group, new_consumer
):
    """Committed but never yielded: a fetch without records moved the position past the others."""

    def fetch(request, version):
        offset = request.topics[0].partitions[0].fetch_offset if request.topics else 4
        if offset == 3:
            marker = bytearray(
                build_end_transaction_marker(
                    EndTransactionMarker(True, 0), producer_id=1, producer_epoch=0, timestamp_ms=0
                )
            )
            marker[:8] = (3).to_bytes(8, "big")
            return fetched(request, bytes(marker))
        return fetched(request, batch_at(0, [b"a", b"b", b"c"])) if offset < 3 else None

    broker.on(FetchRequest, fetch)
    consumer = new_consumer("orders", enable_auto_commit=False)
    consumer.poll(timeout_ms=0)
    network.run_for(5_000)
    for number, record in enumerate(consumer, start=1):
        network.run_for(100)
        consumer.commit()
        assert record.offset == number - 1
        assert group.committed == number
        if number == 3:
            break
    assert consumer.poll(timeout_ms=100) == {}
    assert consumer.position(P0) == 4  # the marker is no record


def fetched(request, records):
    (topic,) = request.topics
    data = PartitionData(partition_index=0, high_watermark=4, records=records)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[data])
        ]
    )


def test_a_poll_that_does_not_update_offsets_returns_the_same_again(new_consumer):
    consumer = new_consumer("orders")
    for _ in range(2):
        assert values(consumer.poll(timeout_ms=1_000, update_offsets=False)) == [b"a", b"b", b"c"]
        assert consumer.position(P0) == 0
    assert values(consumer.poll(timeout_ms=1_000)) == [b"a", b"b", b"c"]
    assert consumer.position(P0) == 3


def test_a_loop_that_has_failed_is_said_and_not_waited_for(new_consumer):
    consumer = new_consumer("orders")
    consumer.poll(timeout_ms=1_000)
    consumer._engine._io_thread.failure = ValueError("broken")
    with pytest.raises(IllegalStateError, match="broken"):
        consumer.poll(timeout_ms=10**9)


def test_no_broker_at_the_address_is_said_by_the_constructor(network, broker):
    broker.refuse_connections()
    with pytest.raises(NoBrokersAvailable, match="broker1:9092"):
        KafkaConsumer("orders", bootstrap_servers="broker1", environment=network)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda consumer: consumer.subscribe("orders"), TypeError),
        (lambda consumer: consumer.subscribe(["no such name!"]), ValueError),
        (lambda consumer: consumer.subscribe(), ValueError),
        (lambda consumer: consumer.subscribe(["a"], pattern="b"), ValueError),
        (lambda consumer: consumer.subscribe(["a"], listener=print), TypeError),
        (lambda consumer: consumer.assign([P0]), IllegalStateError),
        (lambda consumer: consumer.poll(timeout_ms=-1), ValueError),
        (lambda consumer: consumer.poll(max_records=0), ValueError),
        (lambda consumer: consumer.poll(max_records=1.5), TypeError),
        (lambda consumer: consumer.seek(P0, 0), ValueError),
        (lambda consumer: consumer.seek_to_end(P0), ValueError),
        (lambda consumer: consumer.seek_to_end(), ValueError),
        (lambda consumer: consumer.seek(("orders", 0), 0), TypeError),
        (lambda consumer: consumer.position(P0), IllegalStateError),
        (lambda consumer: consumer.highwater(P0), IllegalStateError),
        (lambda consumer: consumer.pause(P0), IllegalStateError),
        (lambda consumer: consumer.commit({P0: 5}), TypeError),
        (lambda consumer: consumer.offsets_for_times({P0: -1}), ValueError),
        (lambda consumer: consumer.committed("orders"), TypeError),
    ],
)
def test_wrong_arguments_are_said_at_once(new_consumer, call, error):
    with pytest.raises(error):
        call(new_consumer("orders"))


def test_every_method_of_kafka_pythons_consumer_is_here_and_takes_its_arguments():
    from kafka import KafkaConsumer as Theirs

    left_out = {"bootstrap"}  # the constructor does it
    for name, method in vars(Theirs).items():
        if name.startswith("_") or not callable(method) or name in left_out:
            continue
        ours = inspect.signature(getattr(KafkaConsumer, name)).parameters
        for parameter in inspect.signature(method).parameters.values():
            assert parameter.name in ours, f"{name}({parameter.name})"
            assert ours[parameter.name].default == parameter.default, (name, parameter.name)
