"""Fetch: whole batches, limits, and the waiting for records."""

from typing import Any

import pytest

from broker_stub.log.files.file_slice import FileSlice
from broker_stub.replica.partition import Partition
from broker_stub.testing.request_log import RequestLog
from pyclient.error_codes import (
    FencedLeaderEpochError,
    OffsetOutOfRangeError,
    UnknownLeaderEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest
from pyclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.records.batch import iter_batches
from tests.support.node_harness import HOST, PORT, NodeHarness, batch, produce_request

BY_NAME, BY_ID = 12, 17


def fetch_request(
    *offsets: int,
    topic: str = "orders",
    topic_id: bytes = ZERO_UUID,
    partition_max_bytes: int = 1 << 20,
    leader_epoch: int = -1,
    **fields: Any,
) -> FetchRequest:
    """Fetch partition 0, 1, ... from these offsets; without waiting, unless told."""
    return FetchRequest(
        **{"max_wait_ms": 0, "min_bytes": 1, **fields},
        topics=[
            FetchTopic(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=leader_epoch,
                    )
                    for index, offset in enumerate(offsets)
                ],
            )
        ],
    )


def produce(harness: NodeHarness, *values: bytes, topic: str = "orders", partition: int = 0):
    response = harness.ask(produce_request(topic, batch(*values), partition=partition), 9)
    assert response.responses[0].partition_responses[0].error_code == 0


def first_partition(response: Any) -> PartitionData:
    return response.responses[0].partitions[0]


def values_of(data: PartitionData, from_offset: int = 0) -> list[bytes | None]:
    return [
        record.value
        for one in iter_batches(data.records)
        for record in one.decode(from_offset=from_offset)
    ]


@pytest.mark.parametrize("version", range(4, 18))
def test_records_come_back_in_every_version(harness, version):
    topic_id = harness.create_topic("orders")
    produce(harness, b"a", b"b")
    response = harness.ask(fetch_request(0, topic_id=topic_id), version)
    data = first_partition(response)
    assert data.error_code == 0
    assert data.high_watermark == 2
    assert data.last_stable_offset == 2
    assert values_of(data) == [b"a", b"b"]
    assert response.responses[0].topic == ("orders" if version <= BY_NAME else "")


def file_ranges(harness: NodeHarness, request: FetchRequest) -> int:
    parts = harness.start(request, BY_NAME).reply.parts
    return sum(isinstance(part, FileSlice) for part in parts)


def produce_large(harness: NodeHarness, partition: int = 0) -> None:
    large = batch(b"x" * 70_000, size=1 << 17)
    harness.ask(produce_request("orders", large, partition=partition), 9)


def test_records_are_sent_as_a_range_of_their_file(harness):
    harness.create_topic("orders")
    produce_large(harness)
    assert file_ranges(harness, fetch_request(0)) == 1


def test_a_few_records_are_not_worth_a_range_of_their_own(harness):
    harness.create_topic("orders", partitions=2)
    produce(harness, b"a")
    produce(harness, b"b", partition=1)
    request = fetch_request(0, 0)
    assert file_ranges(harness, request) == 0
    response = harness.ask(request, BY_NAME)
    assert [values_of(one) for one in response.responses[0].partitions] == [[b"a"], [b"b"]]


def test_one_answer_keeps_a_bounded_number_of_files_open(harness):
    harness.create_topic("orders", partitions=70)
    for index in range(70):
        produce_large(harness, index)
    request = fetch_request(*[0] * 70, max_wait_ms=500, min_bytes=50 << 20)
    pending = harness.start(request, BY_NAME)
    assert pending.arrived, "it has what it can hold: there is nothing to wait for"
    filled = [bool(values_of(one)) for one in pending.response.responses[0].partitions]
    assert filled == [True] * 64 + [False] * 6


def test_a_batch_that_holds_the_offset_comes_whole(harness):
    harness.create_topic("orders")
    produce(harness, b"a", b"b", b"c")
    data = first_partition(harness.ask(fetch_request(1), BY_NAME))
    assert values_of(data) == [b"a", b"b", b"c"]
    assert values_of(data, from_offset=1) == [b"b", b"c"]


def test_the_first_batch_comes_even_if_it_is_larger_than_every_limit(harness):
    harness.create_topic("orders")
    produce(harness, b"x" * 1000)
    produce(harness, b"y" * 1000)
    request = fetch_request(0, partition_max_bytes=10, max_bytes=10)
    assert values_of(first_partition(harness.ask(request, BY_NAME))) == [b"x" * 1000]


def test_a_later_partition_gets_nothing_once_the_limit_is_reached(harness):
    harness.create_topic("orders", partitions=2)
    produce(harness, b"x" * 1000)
    produce(harness, b"y" * 1000, partition=1)
    response = harness.ask(fetch_request(0, 0, max_bytes=1100), BY_NAME)
    first, second = response.responses[0].partitions
    assert len(values_of(first)) == 1
    assert values_of(second) == []
    assert second.high_watermark == 1


def test_limits_end_at_whole_batches(harness):
    harness.create_topic("orders")
    for _ in range(5):
        produce(harness, b"x" * 100)
    one = len(batch(b"x" * 100))
    request = fetch_request(0, partition_max_bytes=2 * one + one // 2)
    assert len(first_partition(harness.ask(request, BY_NAME)).records) == 2 * one


def test_a_fetch_at_the_end_waits_until_its_time_is_out(harness):
    harness.create_topic("orders")
    pending = harness.start(fetch_request(0, max_wait_ms=500), BY_NAME)
    harness.advance(499)
    assert not pending.arrived
    harness.advance(1)
    assert values_of(first_partition(pending.response)) == []


def test_an_append_wakes_a_fetch_that_waits_for_it(harness):
    harness.create_topic("orders")
    pending = harness.start(fetch_request(0, max_wait_ms=500), BY_NAME)
    produce(harness, b"a")
    assert values_of(first_partition(pending.response)) == [b"a"]
    assert harness.node.timers.next_deadline_ms() is None
    assert len(harness.node.purgatory) == 0


def test_an_append_elsewhere_wakes_nobody(harness):
    harness.create_topic("orders")
    harness.create_topic("other")
    pending = harness.start(fetch_request(0, max_wait_ms=500), BY_NAME)
    produce(harness, b"a", topic="other")
    assert not pending.arrived


def test_a_produce_to_many_partitions_wakes_a_fetch_once_with_all_of_it(harness):
    harness.create_topic("orders", partitions=2)
    pending = harness.start(fetch_request(0, 0, max_wait_ms=500), BY_NAME)
    request = produce_request("orders", batch(b"a"))
    request.topic_data += produce_request("orders", batch(b"b"), partition=1).topic_data
    harness.ask(request, 9)
    first, second = pending.response.responses[0].partitions
    assert values_of(first) == [b"a"]
    assert values_of(second) == [b"b"]


def test_a_fetch_waits_for_min_bytes(harness):
    harness.create_topic("orders")
    pending = harness.start(fetch_request(0, max_wait_ms=500, min_bytes=300), BY_NAME)
    produce(harness, b"x" * 100)
    assert not pending.arrived
    produce(harness, b"x" * 100)
    assert len(values_of(first_partition(pending.response))) == 2


def test_a_fetch_that_a_limit_keeps_below_min_bytes_does_not_wait(harness):
    harness.create_topic("orders")
    produce(harness, b"x" * 100)
    produce(harness, b"x" * 100)
    request = fetch_request(0, partition_max_bytes=200, max_wait_ms=500, min_bytes=1000)
    assert len(values_of(first_partition(harness.ask(request, BY_NAME)))) == 1


def test_min_bytes_0_never_waits(harness):
    harness.create_topic("orders")
    response = harness.ask(fetch_request(0, max_wait_ms=500, min_bytes=0), BY_NAME)
    assert values_of(first_partition(response)) == []


def test_an_offset_that_is_not_there_is_told_at_once(harness):
    harness.create_topic("orders")
    response = harness.ask(fetch_request(5, max_wait_ms=500), BY_NAME)
    assert first_partition(response).error_code == OffsetOutOfRangeError.code
    assert first_partition(response).high_watermark == -1


def test_a_missing_topic_is_told_at_once(harness):
    response = harness.ask(fetch_request(0, topic="missing", max_wait_ms=500), BY_NAME)
    assert first_partition(response).error_code == UnknownTopicOrPartitionError.code


def test_an_unknown_topic_id_is_told_at_once(harness):
    response = harness.ask(fetch_request(0, topic_id=b"x" * 16, max_wait_ms=500), BY_ID)
    assert first_partition(response).error_code == UnknownTopicIdError.code


def test_the_end_of_its_topic_wakes_a_fetch(harness):
    topic_id = harness.create_topic("orders")
    by_name = harness.start(fetch_request(0, max_wait_ms=500), BY_NAME)
    by_id = harness.start(fetch_request(0, topic_id=topic_id, max_wait_ms=500), BY_ID)
    harness.ask(DeleteTopicsRequest(topic_names=["orders"]), 5)
    assert first_partition(by_name.response).error_code == UnknownTopicOrPartitionError.code
    assert first_partition(by_id.response).error_code == UnknownTopicIdError.code


@pytest.mark.parametrize(("epoch", "error"), [(-1, None), (0, None), (1, UnknownLeaderEpochError)])
def test_a_client_must_know_the_current_leader_epoch_or_none(harness, epoch, error):
    harness.create_topic("orders")
    response = harness.ask(fetch_request(0, leader_epoch=epoch), BY_NAME)
    assert first_partition(response).error_code == (error.code if error else 0)


def test_a_client_with_an_old_leader_epoch_is_fenced(harness):
    harness.create_topic("orders")
    harness.node.replicas.partition("orders", 0).leader_epoch = 3
    response = harness.ask(fetch_request(0, leader_epoch=2), BY_NAME)
    assert first_partition(response).error_code == FencedLeaderEpochError.code


@pytest.mark.parametrize("is_watched", [False, True])  # then by the codec
@pytest.mark.parametrize("version", [15, 16, 17])
def test_a_client_that_is_wrong_about_the_leader_is_told_who_it_is(harness, version, is_watched):
    topic_id = harness.create_topic("orders")
    harness.node.replicas.partition("orders", 0).leader_epoch = 3
    if is_watched:
        harness.node.dispatcher.interceptors.append(RequestLog())
    response = harness.ask(fetch_request(0, topic_id=topic_id, leader_epoch=2), version)
    data = first_partition(response)
    assert data.error_code == FencedLeaderEpochError.code
    if version < 16:
        assert (data.current_leader.leader_id, response.node_endpoints) == (-1, [])
        return
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (1, 3)
    (endpoint,) = response.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (1, HOST, PORT)


@pytest.mark.parametrize(
    ("version", "error"), [(BY_NAME, UnknownTopicOrPartitionError), (BY_ID, UnknownTopicIdError)]
)
def test_a_topic_without_a_name_is_unknown_in_the_words_of_the_version(harness, version, error):
    response = harness.ask(fetch_request(0, topic="", topic_id=ZERO_UUID), version)
    assert first_partition(response).error_code == error.code


@pytest.mark.parametrize(("level", "listed"), [(0, None), (1, [])])
def test_readers_of_committed_records_get_a_list_of_aborted_transactions(harness, level, listed):
    harness.create_topic("orders")
    produce(harness, b"a")
    response = harness.ask(fetch_request(0, isolation_level=level), BY_NAME)
    assert first_partition(response).aborted_transactions == listed


def test_a_client_that_leaves_is_forgotten(harness):
    harness.create_topic("orders")
    pending = harness.start(fetch_request(0, max_wait_ms=500), BY_NAME)
    pending.parked.abandon()
    assert len(harness.node.purgatory) == 0
    assert harness.node.timers.next_deadline_ms() is None
    produce(harness, b"a")
    assert not pending.arrived


def test_an_append_costs_a_waiting_fetch_one_partition_not_all(harness, monkeypatch):
    harness.create_topic("orders", partitions=20)
    waiting = harness.start(fetch_request(*[0] * 20, max_wait_ms=1000, min_bytes=250), BY_NAME)
    reads: list[int] = []
    read = Partition.read

    def counted(self: Partition, *arguments: Any, **keywords: Any) -> Any:
        reads.append(self.index)
        return read(self, *arguments, **keywords)

    monkeypatch.setattr(Partition, "read", counted)
    produce(harness, b"x" * 100, partition=7)
    assert (reads, waiting.arrived) == ([7], False)
    produce(harness, b"y" * 100, partition=3)
    assert waiting.arrived
    filled = [
        one.partition_index for one in waiting.response.responses[0].partitions if one.records
    ]
    assert filled == [3, 7]
