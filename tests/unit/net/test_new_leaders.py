"""KIP-951: a former leader names the new one, and clients go there at once.

The new leader is a broker that the metadata does not have, and Metadata is not answered any more:
only what the response said can lead there.
"""

import pytest

from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.errors import NotLeaderOrFollowerError
from pyclient.net.scripted import ScriptedBroker, ScriptedNetwork
from pyclient.protocol.messages import fetch, produce
from pyclient.protocol.messages.current_leader import LeaderIdAndEpoch, NodeEndpoint
from pyclient.protocol.messages.metadata import MetadataRequest
from tests.support.scripted_group import ScriptedGroup
from tests.support.scripted_log import ScriptedLog

PARTITION = TopicPartition("orders", 0)


@pytest.fixture
def network() -> ScriptedNetwork:
    network = ScriptedNetwork()
    network.add_broker(1)
    network.add_topic("orders")
    return network


@pytest.fixture
def newcomer(network: ScriptedNetwork) -> ScriptedBroker:
    """A broker that the metadata does not list."""
    answers = iter([network.describe(MetadataRequest(topics=None), 12)])
    network.brokers[1].on(MetadataRequest, lambda _request, _version: next(answers, None))
    return network.add_broker(7)


def test_a_record_goes_to_the_leader_that_the_answer_names(network, newcomer):
    log = ScriptedLog(network)
    old = network.brokers[1]

    def moved(request, _version):
        (topic,) = request.topic_data
        answer = produce.PartitionProduceResponse(
            index=0,
            error_code=NotLeaderOrFollowerError.code,
            current_leader=LeaderIdAndEpoch(leader_id=7, leader_epoch=5),
        )
        return produce.ProduceResponse(
            responses=[
                produce.TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=[answer]
                )
            ],
            node_endpoints=[NodeEndpoint(node_id=7, host=newcomer.host, port=newcomer.port)],
        )

    old.on(produce.ProduceRequest, moved)
    with KafkaProducer(bootstrap_servers="broker1", environment=network) as producer:
        began_ms = network.clock.monotonic_ms()
        sent = producer.send("orders", b"value", partition=0).get(10)
        took_ms = network.clock.monotonic_ms() - began_ms
    assert sent.offset == 0
    assert log.values("orders", 0) == [b"value"]
    assert len(newcomer.received(produce.ProduceRequest)) == 1
    assert took_ms < 100  # linger, but no back-off and no request timeout


def test_a_fetch_goes_to_the_leader_that_the_answer_names(network, newcomer):
    group = ScriptedGroup(network, newcomer, [b"a", b"b"])
    old = network.brokers[1]

    def moved(request, _version):
        (topic,) = request.topics
        data = fetch.PartitionData(
            partition_index=0,
            error_code=NotLeaderOrFollowerError.code,
            current_leader=LeaderIdAndEpoch(leader_id=7, leader_epoch=5),
            records=b"",
        )
        return fetch.FetchResponse(
            responses=[
                fetch.FetchableTopicResponse(
                    topic=topic.topic, topic_id=topic.topic_id, partitions=[data]
                )
            ],
            node_endpoints=[NodeEndpoint(node_id=7, host=newcomer.host, port=newcomer.port)],
        )

    old.on(fetch.FetchRequest, moved)
    with KafkaConsumer(bootstrap_servers="broker1", environment=network) as consumer:
        consumer.assign([PARTITION])
        consumer.seek(PARTITION, 0)
        polled = consumer.poll(timeout_ms=1_000)
    assert [record.value for record in polled[PARTITION]] == [b"a", b"b"] == group.values
    assert network.clock.monotonic_ms() < 1_000
