"""Produce to a topic with `flush.messages`: nothing is acked or read that is not on disk."""

import pytest

from broker_stub.replica.partition import Partition
from pyclient.error_codes import (
    KafkaStorageError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.held_background import HeldBackground
from tests.support.node_harness import NodeHarness, batch, produce_request


@pytest.fixture
def held(harness: NodeHarness) -> HeldBackground:
    harness.create_topic("orders", flush_messages="2")
    background = HeldBackground()
    harness.node.background = background
    return background


def produce(harness, *values, acks=-1):
    return harness.start(produce_request("orders", batch(*values), acks=acks), 9)


def fetch(harness, offset=0, max_wait_ms=0):
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="orders", partitions=[partition])
    return harness.start(FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=[topic]), 12)


def readable(harness):
    return fetch(harness).response.responses[0].partitions[0].high_watermark


def test_the_answer_and_the_readers_wait_for_the_fsync(harness, held):
    assert produce(harness, b"a").response.responses[0].partition_responses[0].base_offset == 0
    assert readable(harness) == 1  # one alone is not due
    waiting = fetch(harness, 1, max_wait_ms=1000)
    due = produce(harness, b"b")
    assert (due.arrived, readable(harness), waiting.arrived) == (False, 1, False)
    held.let_go()
    assert due.response.responses[0].partition_responses[0].base_offset == 1
    assert readable(harness) == 2
    assert len(waiting.response.responses[0].partitions[0].records) > 0


def test_what_comes_behind_a_flush_waits_for_one_of_its_own(harness, held):
    first = produce(harness, b"a", b"b")
    assert readable(harness) == 0
    held.let_go()
    assert (first.arrived, readable(harness)) == (True, 2)
    second = produce(harness, b"c", b"d")
    third = produce(harness, b"e", b"f")
    assert readable(harness) == 2
    held.let_go()  # syncs all that is there by then
    assert (second.arrived, third.arrived, readable(harness)) == (True, False, 6)
    held.let_go()
    assert third.arrived


def test_acks_0_are_flushed_too_without_anybody_waiting(harness, held):
    assert produce(harness, b"a", b"b", acks=0).reply.parts == []
    assert readable(harness) == 0
    held.let_go()
    assert readable(harness) == 2
    assert harness.node.replicas.partition("orders", 0).log.recovery_point == 2


def test_what_is_synced_later_is_shown_then(harness, held):
    due = produce(harness, b"a", b"b")
    held.let_go(OSError("no descriptor left"))
    assert due.response.responses[0].partition_responses[0].error_code == KafkaStorageError.code
    produce(harness, b"c")
    assert readable(harness) == 0
    harness.node.replicas.partition("orders", 0).log.flush()
    assert readable(harness) == 3


def test_a_topic_that_goes_while_it_is_synced_is_gone(harness, held):
    due = produce(harness, b"a", b"b")
    topic_id = harness.node.image.topic("orders").topic_id
    harness.node.controller.delete_topics([topic_id], lambda outcomes: None)
    held.let_go()
    outcome = due.response.responses[0].partition_responses[0]
    assert outcome.error_code == UnknownTopicOrPartitionError.code


def test_a_mistake_in_one_append_leaves_no_other_unsynced(harness, held, monkeypatch, caplog):
    harness.create_topic("payments")
    append = Partition.append

    def append_or_fail(partition, *arguments, **options):
        if partition.topic == "payments":
            raise ZeroDivisionError("a mistake")
        return append(partition, *arguments, **options)

    monkeypatch.setattr(Partition, "append", append_or_fail)
    request = produce_request("orders", batch(b"a", b"b"))
    request.topic_data += produce_request("payments", batch(b"c")).topic_data
    both = harness.start(request, 9)
    held.let_go()
    outcomes = [one.partition_responses[0].error_code for one in both.response.responses]
    assert outcomes == [0, UnknownServerError.code]
    assert readable(harness) == 2
    assert "ZeroDivisionError" in caplog.text


def test_what_could_not_be_synced_is_never_shown(harness, held):
    due = produce(harness, b"a", b"b")
    held.let_go(OSError("the disk is gone"))
    outcome = due.response.responses[0].partition_responses[0]
    assert outcome.error_code == KafkaStorageError.code
    assert readable(harness) == 0
