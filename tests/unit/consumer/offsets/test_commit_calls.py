"""Commits of whole consumers: they end with their caller, and say why they failed."""

import pytest

from pyclient import OffsetAndMetadata, TopicPartition
from pyclient.errors import (
    CoordinatorLoadInProgressError,
    KafkaTimeoutError,
    OffsetMetadataTooLargeError,
    UnknownTopicOrPartitionError,
    WakeupError,
)
from pyclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

P0 = TopicPartition("orders", 0)


def refused(error):
    """A handler that refuses every commit with this error."""

    def refuse(request, version):
        (topic,) = request.topics
        answer = OffsetCommitResponsePartition(partition_index=0, error_code=error.code)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=[answer]
                )
            ]
        )

    return refuse


def offsets_sent(broker):
    return [
        request.topics[0].partitions[0].committed_offset
        for request in broker.received(OffsetCommitRequest)
    ]


def interrupt_after(broker, attempts, interrupt):
    """Refuse commits for a passing reason, and interrupt the caller after so many."""
    refuse = refused(CoordinatorLoadInProgressError)

    def answer(request, version):
        if len(broker.received(OffsetCommitRequest)) == attempts:
            interrupt()
        return refuse(request, version)

    broker.on(OffsetCommitRequest, answer)


def test_a_commit_that_was_interrupted_is_not_retried(network, broker, group, new_consumer):
    consumer = new_consumer("orders", enable_auto_commit=False)
    consumer.poll(timeout_ms=10_000)
    interrupt_after(broker, 2, consumer.wakeup)
    with pytest.raises(WakeupError):
        consumer.commit({P0: OffsetAndMetadata(1)})
    sent = len(offsets_sent(broker))
    broker.on(OffsetCommitRequest, group.commit)
    consumer.commit({P0: OffsetAndMetadata(2)})
    network.run_for(60_000)
    assert offsets_sent(broker)[sent:] == [2]
    assert group.committed == 2


def test_a_commit_that_timed_out_is_not_retried(network, broker, group, new_consumer):
    consumer = new_consumer("orders", enable_auto_commit=False)
    consumer.poll(timeout_ms=10_000)
    broker.on(OffsetCommitRequest, refused(CoordinatorLoadInProgressError))
    with pytest.raises(KafkaTimeoutError, match=r"the last attempt failed: .*LOAD_IN_PROGRESS"):
        consumer.commit(timeout_ms=500)
    sent = len(offsets_sent(broker))
    broker.on(OffsetCommitRequest, group.commit)
    network.run_for(60_000)
    assert len(offsets_sent(broker)) == sent


def test_a_commit_that_was_interrupted_while_the_coordinator_was_sought_is_never_sent(
    network, broker, group, new_consumer
):
    consumer = new_consumer(enable_auto_commit=False)
    consumer.assign([P0])

    def interrupt(request, version):
        consumer.wakeup()

    broker.on(FindCoordinatorRequest, interrupt)
    with pytest.raises(WakeupError):
        consumer.commit({P0: OffsetAndMetadata(1)})
    broker.on(FindCoordinatorRequest, group.find_coordinator)
    network.run_for(60_000)
    assert offsets_sent(broker) == []


def test_a_commit_of_a_topic_that_does_not_exist_does_not_wait_for_it(
    network, broker, new_consumer
):
    consumer = new_consumer(enable_auto_commit=False)
    consumer.assign([P0])
    broker.on(OffsetCommitRequest, refused(UnknownTopicOrPartitionError))
    before_ms = network.clock.monotonic_ms()
    with pytest.raises(UnknownTopicOrPartitionError, match="orders-0"):
        consumer.commit({P0: OffsetAndMetadata(1)})
    assert network.clock.monotonic_ms() - before_ms < 5_000


def test_a_commit_without_a_coordinator_says_so(broker, new_consumer):
    consumer = new_consumer(enable_auto_commit=False)
    consumer.assign([P0])
    loading = FindCoordinatorResponse(error_code=CoordinatorLoadInProgressError.code)
    broker.on(FindCoordinatorRequest, lambda request, version: loading)
    with pytest.raises(KafkaTimeoutError, match="coordinator of group 'g' is unknown: finding it"):
        consumer.commit({P0: OffsetAndMetadata(1)}, timeout_ms=1_000)


def test_a_commit_returns_after_the_callbacks_of_earlier_commits(new_consumer):
    consumer = new_consumer("orders", enable_auto_commit=False)
    consumer.poll(timeout_ms=10_000)
    called = []
    for offset in (1, 2):
        consumer.commit_async(
            {P0: OffsetAndMetadata(offset)},
            callback=lambda offsets, error: called.append((offsets[P0].offset, error)),
        )
    consumer.commit({P0: OffsetAndMetadata(3)})
    assert called == [(1, None), (2, None)]


def test_a_commit_that_fails_calls_back_earlier_ones_all_the_same(broker, new_consumer):
    consumer = new_consumer("orders", enable_auto_commit=False)
    consumer.poll(timeout_ms=10_000)
    broker.on(OffsetCommitRequest, refused(OffsetMetadataTooLargeError))
    called = []
    consumer.commit_async({P0: OffsetAndMetadata(1)}, callback=lambda *call: called.append(call))
    with pytest.raises(OffsetMetadataTooLargeError):
        consumer.commit({P0: OffsetAndMetadata(2)})
    assert len(called) == 1


def test_a_callback_may_commit(group, new_consumer):
    consumer = new_consumer("orders", enable_auto_commit=False)
    consumer.poll(timeout_ms=10_000)
    consumer.commit_async(
        {P0: OffsetAndMetadata(1)},
        callback=lambda offsets, error: consumer.commit({P0: OffsetAndMetadata(2)}),
    )
    consumer.poll(timeout_ms=1_000)
    assert group.committed == 2


def test_automatic_commits_do_not_pile_up(network, broker, new_consumer):
    consumer = new_consumer("orders", auto_commit_interval_ms=0, max_poll_records=1)
    broker.on(OffsetCommitRequest, None)
    for _ in range(3):
        consumer.poll(timeout_ms=1_000)
    for _ in range(20):
        consumer.poll(timeout_ms=10)
    assert len(offsets_sent(broker)) == 1


def test_a_commit_that_is_interrupted_before_it_waits_is_not_retried(
    network, broker, group, new_consumer, monkeypatch
):
    consumer = new_consumer("orders", enable_auto_commit=False)
    consumer.poll(timeout_ms=10_000)
    broker.on(OffsetCommitRequest, refused(CoordinatorLoadInProgressError))
    submit = consumer._engine.submit

    def interrupted(command):
        submit(command)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(consumer._engine, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.commit({P0: OffsetAndMetadata(1)})
    network.run_for(60_000)
    assert len(offsets_sent(broker)) <= 1
