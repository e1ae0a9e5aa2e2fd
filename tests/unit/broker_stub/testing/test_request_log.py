"""The request log: what it counts, keeps and discards."""

import pytest

from broker_stub.log.batch.header import BatchHeader
from broker_stub.testing import request_log
from pyclient.errors import NotLeaderOrFollowerError
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pyclient.protocol.messages.produce import ProduceRequest, ProduceResponse
from pyclient.records.header import unpack_header
from tests.support.node_harness import batch, produce_request


def test_requests_are_counted_by_api(harness, requests):
    for _ in range(3):
        harness.ask(ApiVersionsRequest(), 0)
    harness.ask(MetadataRequest(topics=[]))
    assert requests.count(ApiVersionsRequest) == 3
    assert requests.count(MetadataRequest) == 1
    assert requests.count(ProduceRequest) == 0
    assert requests.count() == 4


def test_requests_can_be_looked_at_with_their_circumstances(harness, requests):
    topics = [MetadataRequestTopic(name="orders")]
    harness.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 5)
    (request,) = requests.of(MetadataRequest)
    assert request.topics == topics
    (received,) = requests.received(MetadataRequest)
    assert received.message is request
    assert (received.api_version, received.client_id) == (5, "test")
    assert received.connection_id == harness.connection.connection_id
    assert "orders" in repr(received)


def test_of_records_only_the_header_of_the_batch_is_kept(harness, requests):
    harness.create_topic("orders")
    records = batch(b"x" * 10_000, producer_id=7, producer_epoch=1, base_sequence=0)
    harness.ask(produce_request("orders", records), 12)
    (request,) = requests.of(ProduceRequest)
    assert request.acks == -1
    kept = request.topic_data[0].partition_data[0].records
    header = BatchHeader(*unpack_header(kept))
    assert len(kept) == 61
    assert (header.producer_id, header.base_sequence, header.record_count) == (7, 0, 1)
    assert header.size == len(records)


def test_a_produce_request_without_records_is_kept_as_it_is(harness, requests):
    harness.ask(produce_request("orders"), 12)
    assert requests.of(ProduceRequest)[0].topic_data[0].partition_data[0].records is None


def test_requests_that_a_fault_takes_are_counted_all_the_same(harness, faults, requests):
    harness.node.dispatcher.interceptors.reverse()  # as in a broker: the log comes first
    faults.fail_next(MetadataRequest, NotLeaderOrFollowerError)
    harness.ask(MetadataRequest(topics=[]))
    assert requests.count(MetadataRequest) == 1


def test_only_the_last_requests_are_kept_but_all_are_counted(harness, requests, monkeypatch):
    monkeypatch.setattr(request_log, "KEPT", 2)
    for name in ("a", "b", "c"):
        harness.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]))
    assert [request.topics[0].name for request in requests.of(MetadataRequest)] == ["b", "c"]
    assert requests.count(MetadataRequest) == 3


def test_large_requests_are_kept_for_a_shorter_time(harness, requests, monkeypatch):
    monkeypatch.setattr(request_log, "KEPT_WEIGHT", 250)
    partitions = [FetchPartition(partition=index) for index in range(100)]
    for wait_ms in range(3):
        topics = [FetchTopic(topic="orders", partitions=partitions)]
        harness.ask(FetchRequest(max_wait_ms=wait_ms, topics=topics), 12)
    assert [request.max_wait_ms for request in requests.of(FetchRequest)] == [1, 2]


def test_clear_starts_from_nothing(harness, requests):
    harness.ask(ApiVersionsRequest(), 0)
    requests.clear()
    assert requests.count() == 0
    assert requests.of(ApiVersionsRequest) == []


@pytest.mark.parametrize("api", ["Produce", ProduceResponse, ProduceRequest(), 0])
def test_an_api_is_named_by_the_class_of_its_request_or_refused(requests, api):
    for look in (requests.count, requests.of, requests.received):
        with pytest.raises(TypeError, match=r"as ProduceRequest of pyclient.*produce is"):
            look(api)
