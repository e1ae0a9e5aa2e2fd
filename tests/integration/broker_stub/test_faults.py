"""`broker.faults` and `broker.requests` on a running broker, as its clients meet them."""

from collections.abc import Iterator

import pytest

from broker_stub import Broker
from broker_stub.testing import Always, Randomly
from pyclient import KafkaProducer
from pyclient.errors import (
    LeaderNotAvailableError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
)
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.records.batch import iter_batches
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch, produce_request


@pytest.fixture
def producer(kafka_broker: Broker) -> Iterator[KafkaProducer]:
    made = KafkaProducer(
        bootstrap_servers=kafka_broker.bootstrap_servers, retry_backoff_ms=1, linger_ms=0
    )
    yield made
    made.close(timeout=10)


def values_in(broker: Broker, topic: str = "orders") -> list[bytes | None]:
    partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic=topic, partitions=[partition])])
    with RawClient(broker.port) as client:
        data = client.ask(request, 12).responses[0].partitions[0]
    return [record.value for one in iter_batches(data.records) for record in one.decode()]


def look_ups(broker: Broker) -> int:
    """How often clients asked where a topic is."""
    return sum(bool(request.topics) for request in broker.requests.of(MetadataRequest))


def test_send_retries_on_the_new_leader_after_not_leader_error(kafka_broker, producer):
    kafka_broker.faults.fail_next(ProduceRequest, NotLeaderOrFollowerError)
    assert producer.send("orders", b"v").get(timeout=5).offset == 0
    assert kafka_broker.requests.count(ProduceRequest) == 2
    assert look_ups(kafka_broker) == 2  # the first look-up, then the refresh


def test_a_batch_that_was_written_before_its_answer_was_lost_is_there_once(kafka_broker, producer):
    kafka_broker.faults.drop(ProduceRequest, after=True)
    assert producer.send("orders", b"v").get(timeout=10).offset == 0
    assert kafka_broker.requests.count(ProduceRequest) == 2
    assert values_in(kafka_broker) == [b"v"]


def test_a_batch_whose_answer_was_cut_off_is_there_once(kafka_broker, producer):
    kafka_broker.faults.cut(ProduceRequest, 9)
    assert producer.send("orders", b"v").get(timeout=10).offset == 0
    assert values_in(kafka_broker) == [b"v"]


@pytest.mark.parametrize("after", [False, True])
def test_records_arrive_once_and_in_order_through_random_errors(kafka_broker, producer, after):
    kafka_broker.create_topic("orders")
    fault = kafka_broker.faults.fail(
        ProduceRequest, RequestTimedOutError, Randomly(0.4, seed=11), topic="orders", after=after
    )
    futures = []
    for index in range(60):
        futures.append(producer.send("orders", b"%d" % index))
        if index % 5 == 4:
            producer.flush(timeout=20)  # many small requests, for many errors
    assert [future.get(timeout=20).offset for future in futures] == list(range(60))
    assert values_in(kafka_broker) == [b"%d" % index for index in range(60)]
    assert fault.hits > 0


def test_an_error_of_one_partition_does_not_hold_up_the_others(kafka_broker, producer):
    kafka_broker.create_topic("orders", partitions=2)
    fault = kafka_broker.faults.fail(
        ProduceRequest, NotEnoughReplicasError, Always(), topic="orders", partition=0
    )
    stuck = producer.send("orders", b"a", partition=0)
    assert producer.send("orders", b"b", partition=1).get(timeout=10).offset == 0
    assert not stuck.is_done
    fault.cancel()
    assert stuck.get(timeout=10).offset == 0


def test_a_topic_without_a_leader_is_asked_for_again(kafka_broker, producer):
    fault = kafka_broker.faults.fail_next(
        MetadataRequest, LeaderNotAvailableError, count=2, topic="orders"
    )
    assert producer.send("orders", b"v").get(timeout=10).offset == 0
    assert fault.hits == 2


def test_a_client_speaks_to_an_older_broker_as_that_one_would_have_it(kafka_broker):
    kafka_broker.faults.hide(ProduceRequest, above=8)
    kafka_broker.faults.hide(MetadataRequest, above=5)
    producer = KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers)
    try:
        assert producer.send("orders", b"v").get(timeout=10).offset == 0
    finally:
        producer.close(timeout=10)
    assert {one.api_version for one in kafka_broker.requests.received(ProduceRequest)} == {8}
    assert {one.api_version for one in kafka_broker.requests.received(MetadataRequest)} == {5}


def test_faults_and_counts_stand_over_a_restart(kafka_broker):
    kafka_broker.create_topic("orders")
    kafka_broker.faults.fail_next(ProduceRequest, NotLeaderOrFollowerError)
    with RawClient(kafka_broker.port) as client:
        client.ask(ApiVersionsRequest(), 0)
    kafka_broker.restart()
    with RawClient(kafka_broker.port) as client:
        client.ask(ApiVersionsRequest(), 0)
        response = client.ask(produce_request("orders", batch(b"v")), 9)
    assert response.responses[0].partition_responses[0].error_code == NotLeaderOrFollowerError.code
    assert kafka_broker.requests.count(ApiVersionsRequest) == 2


def test_faults_may_be_ordered_before_the_broker_starts():
    broker = Broker()
    broker.faults.hide(InitProducerIdRequest)
    with broker, RawClient(broker.port) as client:
        listed = {row.api_key for row in client.ask(ApiVersionsRequest(), 0).api_keys}
    assert InitProducerIdRequest.api_key not in listed


def test_a_dropped_connection_is_closed_and_a_cut_answer_ends_in_the_middle(kafka_broker):
    kafka_broker.faults.drop(ApiVersionsRequest)
    kafka_broker.faults.cut(ApiVersionsRequest, 20)
    with RawClient(kafka_broker.port) as client:
        client.send(ApiVersionsRequest(), 0)
        assert client.is_closed_by_peer()
    with RawClient(kafka_broker.port) as client:
        client.send(ApiVersionsRequest(), 0)
        assert len(client.read(20)) == 20
        assert client.is_closed_by_peer()
