"""Idle topics are dropped from the metadata, and fetched again on use."""

import pytest

from pyclient.errors import KafkaTimeoutError
from pyclient.protocol.messages.metadata import MetadataRequest
from tests.support.sender_world import SenderWorld


@pytest.fixture
def producer(log, new_producer):
    return new_producer(metadata_max_age_ms=1_000, metadata_max_idle_ms=5_000, max_block_ms=300)


def asked_topics(network):
    """The topics of the last request."""
    return [topic.name for topic in network.brokers[1].received(MetadataRequest)[-1].topics]


def test_a_topic_is_asked_for_no_longer_than_it_is_used(network, producer):
    producer.send("orders", b"v").get(5)
    network.run_for(4_500)
    assert asked_topics(network) == ["orders"]
    network.run_for(3_000)
    assert asked_topics(network) == []


def test_every_batch_counts_as_use(network, producer):
    for _ in range(4):
        producer.send("orders", b"v").get(5)
        network.run_for(3_000)
    assert asked_topics(network) == ["orders"]


def test_a_topic_that_does_not_exist_is_not_asked_for_for_ever(network, producer):
    with pytest.raises(KafkaTimeoutError, match="mispelt"):
        producer.send("mispelt", b"v")
    network.run_for(3_000)
    assert "mispelt" in asked_topics(network)
    network.run_for(5_000)
    requests = len(network.brokers[1].received(MetadataRequest))
    assert asked_topics(network) == []
    network.run_for(10_000)
    assert len(network.brokers[1].received(MetadataRequest)) <= requests + 11  # by age alone


def test_a_forgotten_topic_is_found_again_and_goes_on_in_order(network, log, producer):
    first = producer.send("orders", b"0", partition=0)
    first.get(5)
    network.run_for(10_000)
    assert asked_topics(network) == []
    second = producer.send("orders", b"1", partition=0)
    assert second.get(5).offset == first.get(0).offset + 1
    assert log.values("orders", 0) == [b"0", b"1"]


def test_a_record_that_comes_as_its_topic_is_forgotten_has_it_asked_for_again():
    world = SenderWorld(1, batch_size=300)
    snapshot = world.engine.metadata.snapshot.without_topics(["t"])
    queues = world.accumulator.topics["t"]
    world.accumulator.update_metadata(snapshot)
    world.accumulator.append(queues, 0, 1000, None, b"v", (), 0)
    world.accumulator.seal_all()
    world.poll()
    assert world.engine.metadata.kept_topics == ["t"]


def test_a_topic_with_a_batch_under_way_is_in_use():
    world = SenderWorld(1, batch_size=300)
    assert world.accumulator.last_used_ms("t") == float("-inf")
    world.send(b"v", 0)
    assert world.accumulator.last_used_ms("t") == float("inf")
    world.settle()
    assert 0 <= world.accumulator.last_used_ms("t") < float("inf")


def test_records_for_a_topic_that_is_gone_do_not_make_requests_follow_each_other(
    network, log, new_producer
):
    producer = new_producer(retry_backoff_ms=100, retry_backoff_max_ms=1_000)
    producer.send("orders", b"v").get(5)
    del network.topics["orders"]
    producer._core.engine.metadata.request_update()
    network.run_for(1_000)
    queues = producer._core.accumulator._all_topics["orders"]
    producer._core.accumulator.append(queues, 0, 1000, None, b"waits", (), 0)
    requests = len(network.brokers[1].received(MetadataRequest))
    network.run_for(10_000)
    assert len(network.brokers[1].received(MetadataRequest)) - requests < 30


def test_such_a_record_is_sent_once_its_topic_is_found_again(network, log, producer):
    producer.send("orders", b"0", partition=0).get(5)
    network.run_for(10_000)
    assert asked_topics(network) == []
    queues = producer._core.accumulator._all_topics["orders"]  # as a caller has it who was first
    producer._core.accumulator.append(queues, 0, 1000, None, b"1", (), 0)
    producer.flush(timeout=5)
    assert log.values("orders", 0) == [b"0", b"1"]
