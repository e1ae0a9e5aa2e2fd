"""Metadata, and the topics that it creates."""

import pytest

from pyclient.error_codes import (
    InvalidRequestError,
    InvalidTopicError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.node_harness import HOST, PORT, NodeHarness


def request_for(*names: str, **fields) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


@pytest.mark.parametrize("version", range(13))
def test_it_tells_brokers_and_partitions_in_every_version(harness, version):
    harness.create_topic("orders", partitions=3)
    response = harness.ask(request_for("orders"), version)
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, HOST, PORT)
    (topic,) = response.topics
    assert topic.name == "orders"
    assert [one.partition_index for one in topic.partitions] == [0, 1, 2]
    assert {one.leader_id for one in topic.partitions} == {1}
    assert {tuple(one.replica_nodes) for one in topic.partitions} == {(1,)}
    if version >= 1:
        assert response.controller_id == 1
    if version >= 2:
        assert response.cluster_id == harness.node.cluster_id
    if version >= 10:
        assert topic.topic_id == harness.node.image.topic("orders").topic_id


@pytest.mark.parametrize(("version", "topics"), [(0, []), (1, None), (12, None)])
def test_it_tells_all_topics_when_asked_for_none_in_particular(harness, version, topics):
    harness.create_topic("a")
    harness.create_topic("b")
    response = harness.ask(MetadataRequest(topics=topics), version)
    assert [topic.name for topic in response.topics] == ["a", "b"]


def test_from_version_1_on_an_empty_list_asks_for_no_topics(harness):
    harness.create_topic("a")
    assert harness.ask(MetadataRequest(topics=[]), 1).topics == []


def test_a_missing_topic_is_created_with_the_brokers_defaults(tmp_path):
    harness = NodeHarness(tmp_path, num_partitions=4)
    (topic,) = harness.ask(request_for("orders"), 12).topics
    assert topic.error_code == 0
    assert len(topic.partitions) == 4
    assert topic.topic_id != bytes(16)


def test_a_missing_topic_is_not_created_when_the_client_does_not_want_it(harness):
    (topic,) = harness.ask(request_for("orders", allow_auto_topic_creation=False), 12).topics
    assert topic.error_code == UnknownTopicOrPartitionError.code
    assert harness.node.image.topic("orders") is None


def test_a_missing_topic_is_not_created_when_the_broker_does_not_want_it(tmp_path):
    harness = NodeHarness(tmp_path, auto_create_topics_enable=False)
    (topic,) = harness.ask(request_for("orders"), 12).topics
    assert topic.error_code == UnknownTopicOrPartitionError.code


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("name", ["", ".", "..", "white space", "ümlaut", "x" * 250])
def test_an_illegal_name_is_refused(harness, name, create):
    (topic,) = harness.ask(request_for(name, allow_auto_topic_creation=create), 12).topics
    assert topic.error_code == InvalidTopicError.code


def test_a_name_asked_for_twice_is_created_and_told_once(harness):
    (topic,) = harness.ask(request_for("orders", "orders"), 12).topics
    assert topic.error_code == 0


def test_a_topic_is_found_by_its_id(harness):
    topic_id = harness.create_topic("orders")
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id)])
    assert harness.ask(request, 12).topics[0].name == "orders"


def test_an_id_goes_before_a_name_and_creates_nothing(harness):
    topic_id = harness.create_topic("orders")
    request = MetadataRequest(topics=[MetadataRequestTopic(name="other", topic_id=topic_id)])
    assert [topic.name for topic in harness.ask(request, 12).topics] == ["orders"]
    assert harness.node.image.topic("other") is None


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_in_the_versions_that_could_send_them_and_never_meant_it(harness, version):
    topic_id = harness.create_topic("orders")
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders", topic_id=topic_id)])
    (topic,) = harness.ask(request, version).topics
    assert topic.error_code == InvalidRequestError.code


def test_without_an_authorizer_a_client_may_do_all_that_can_be_done(harness):
    harness.create_topic("orders")
    fields = {"include_topic_authorized_operations": True}
    asked = harness.ask(
        request_for("orders", include_cluster_authorized_operations=True, **fields), 10
    )
    # Apache Kafka 4.3 answers these numbers.
    assert asked.topics[0].topic_authorized_operations == 3576
    assert asked.cluster_authorized_operations == 8096
    silent = harness.ask(request_for("orders"), 10)
    assert silent.topics[0].topic_authorized_operations == -(2**31)
    assert silent.cluster_authorized_operations == -(2**31)


def test_an_unknown_id_is_told_so(harness):
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=b"x" * 16)])
    (topic,) = harness.ask(request, 12).topics
    assert topic.error_code == UnknownTopicIdError.code
    assert topic.topic_id == b"x" * 16


def test_the_metadata_log_is_not_created_by_asking_for_it(harness):
    (topic,) = harness.ask(request_for("__cluster_metadata"), 12).topics
    assert topic.error_code == UnknownTopicOrPartitionError.code
    assert harness.node.image.topic("__cluster_metadata") is None


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("__consumer_offsets", "offsets_topic_num_partitions"),
        ("__transaction_state", "transaction_state_log_num_partitions"),
    ],
)
def test_a_coordinators_topic_is_created_with_its_own_settings(tmp_path, name, option):
    harness = NodeHarness(tmp_path, **{option: 7})
    (topic,) = harness.ask(request_for(name), 12).topics
    assert topic.is_internal
    assert len(topic.partitions) == 7
    assert harness.node.image.topic_config(topic.name)["cleanup.policy"] == "compact"
