"""When metadata is asked for, for which topics, and what callers see."""

import pytest

from pyclient.errors import (
    Cancelled,
    InvalidTopicError,
    KafkaTimeoutError,
    TopicAuthorizationError,
)
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from pyclient.types import TopicPartition


@pytest.fixture
def broker(network):
    return network.add_broker(1)


@pytest.fixture
def engine(network, broker, new_engine):
    network.add_topic("orders", partitions=2)
    network.add_topic("payments")
    engine = new_engine()
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    return engine


def asked_topics(broker):
    """The topics of each request so far; None for all."""
    return [
        None if request.topics is None else [topic.name for topic in request.topics]
        for request in broker.received(MetadataRequest)
    ]


def test_the_first_request_asks_for_the_brokers_only(broker, engine):
    assert asked_topics(broker) == [[]]


def test_a_new_topic_is_asked_for_at_once_and_alone(network, broker, engine):
    engine.metadata.wait_for_topic("orders", timeout_ms=1_000)
    before_ms = network.clock.monotonic_ms()
    found = engine.metadata.wait_for_topic("payments", timeout_ms=1_000)
    assert found.name == "payments"
    assert network.clock.monotonic_ms() == before_ms
    assert asked_topics(broker) == [[], ["orders"], ["payments"]]
    assert set(engine.metadata.snapshot.topics) == {"orders", "payments"}


def test_a_known_topic_costs_nothing(broker, engine):
    engine.metadata.wait_for_topic("orders", timeout_ms=1_000)
    requests = len(broker.received(MetadataRequest))
    engine.metadata.wait_for_topic("orders", timeout_ms=0)
    assert len(broker.received(MetadataRequest)) == requests


def test_old_metadata_is_renewed_for_all_topics_of_interest(network, broker, engine):
    engine.metadata.wait_for_topic("orders", timeout_ms=1_000)
    engine.metadata.wait_for_topic("payments", timeout_ms=1_000)
    network.run_for(300_000)
    assert asked_topics(broker)[3:] == [["orders", "payments"]]


def test_updates_that_are_asked_for_together_become_one_request(network, broker, engine):
    network.run_for(1_000)
    requests = len(broker.received(MetadataRequest))
    for _ in range(10):
        engine.metadata.request_update()
    network.run_for(1_000)
    assert len(broker.received(MetadataRequest)) == requests + 1


def test_updates_in_a_row_are_paced(network, broker, engine):
    requests = len(broker.received(MetadataRequest))
    engine.metadata.add_listener(lambda snapshot: engine.metadata.request_update())
    engine.metadata.request_update()
    network.run_for(1_000)
    assert 7 <= len(broker.received(MetadataRequest)) - requests <= 13  # retry.backoff.ms is 100


def test_a_topic_that_does_not_exist_is_asked_for_until_the_time_is_up(network, broker, engine):
    with pytest.raises(KafkaTimeoutError) as caught:
        engine.metadata.wait_for_topic("oders", timeout_ms=5_000)
    assert "topic 'oders'" in str(caught.value)
    assert "does not exist" in str(caught.value)
    assert 4 <= len(broker.received(MetadataRequest)) <= 12  # the pauses grow to a second


def test_a_topic_that_appears_while_someone_waits_is_found(network, broker, engine):
    described = network.describe

    def create_on_third(request, version):
        if len(broker.received(MetadataRequest)) >= 4:
            network.topics.setdefault("late", 1)
            network._topic_ids.setdefault("late", bytes(range(16)))
        return described(request, version)

    broker.on(MetadataRequest, create_on_third)
    assert engine.metadata.wait_for_topic("late", timeout_ms=5_000).name == "late"


def test_a_topic_is_created_by_asking_where_that_is_allowed(network, engine):
    network.auto_create_topics = True
    assert engine.metadata.wait_for_topic("fresh", timeout_ms=1_000).name == "fresh"


@pytest.mark.parametrize("error", [InvalidTopicError, TopicAuthorizationError])
def test_a_topic_that_is_refused_for_good_raises_at_once(network, broker, engine, error):
    broker.on(
        MetadataRequest,
        lambda request, version: MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="broker1", port=9092)],
            topics=[
                MetadataResponseTopic(name=one.name, error_code=error.code)
                for one in request.topics
            ],
        ),
    )
    before_ms = network.clock.monotonic_ms()
    with pytest.raises(error, match="topic 'secret'"):
        engine.metadata.wait_for_topic("secret", timeout_ms=60_000)
    assert network.clock.monotonic_ms() - before_ms < 1_000


def test_without_a_broker_the_timeout_says_what_is_wrong_with_it(network, broker, engine):
    broker.refuse_connections()
    with pytest.raises(KafkaTimeoutError, match=r"'payments' after 2000 ms: .*connection refused"):
        engine.metadata.wait_for_topic("payments", timeout_ms=2_000)


def test_the_interest_can_be_replaced(network, broker, engine):
    engine.metadata.wait_for_topic("orders", timeout_ms=1_000)
    engine.metadata.set_topics(["payments"])
    network.run_for(10)
    assert set(engine.metadata.snapshot.topics) == {"payments"}
    engine.metadata.request_update()
    network.run_for(1_000)
    assert asked_topics(broker)[-1] == ["payments"]


def test_the_interest_can_be_everything(network, broker, engine):
    engine.metadata.set_topics(None)
    network.run_for(200)
    assert asked_topics(broker)[-1] is None
    assert set(engine.metadata.snapshot.topics) == {"orders", "payments"}


def test_a_topic_can_be_forgotten(network, broker, engine):
    engine.metadata.wait_for_topic("orders", timeout_ms=1_000)
    engine.metadata.forget_topic("orders")
    network.run_for(10)
    assert not engine.metadata.snapshot.topics
    engine.metadata.request_update()
    network.run_for(1_000)
    assert asked_topics(broker)[-1] == []


def test_listeners_see_every_snapshot(network, broker, new_engine):
    network.add_topic("orders")
    engine = new_engine()
    versions = []
    engine.metadata.add_listener(lambda snapshot: versions.append(snapshot.version))
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    engine.metadata.wait_for_topic("orders", timeout_ms=1_000)
    assert versions == [1, 2]


def test_a_response_without_brokers_is_not_believed(network, broker, engine):
    broker.on(MetadataRequest, MetadataResponse())
    known = engine.metadata.snapshot
    engine.metadata.request_update()
    network.run_for(500)
    assert engine.metadata.snapshot is known


def test_a_leader_named_by_another_response_is_taken_over_without_a_request(
    network, broker, engine
):
    engine.metadata.wait_for_topic("orders", timeout_ms=1_000)
    network.add_broker(2)
    requests = len(broker.received(MetadataRequest))
    moved = TopicPartition("orders", 1)
    endpoint = engine.metadata.snapshot.brokers[1]._replace(node_id=2, host="broker2")
    engine.submit(lambda: engine.metadata.update_leaders({moved: (2, 5)}, [endpoint]))
    network.run_for(1)
    assert engine.metadata.snapshot.leader_for_partition(moved) == 2
    assert engine.metadata.snapshot.leader_epoch_for_partition(moved) == 5
    assert len(broker.received(MetadataRequest)) == requests
    network.brokers[2].on(HeartbeatRequest, HeartbeatResponse())
    assert engine.request(HeartbeatRequest(), 2, timeout_ms=1_000)  # its address is known too


def test_waiting_callers_get_an_error_when_the_client_is_closed(network, engine):
    engine.submit(lambda: engine._io_thread.stop())
    with pytest.raises(Cancelled, match="closed"):
        engine.metadata.wait_for_topic("orders2", timeout_ms=60_000)
