"""The admin client against our broker."""

import pytest

from broker_stub import Broker
from pyclient.admin import ConfigResource, KafkaAdminClient, NewTopic
from pyclient.errors import (
    InvalidTopicError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)


@pytest.fixture
def admin():
    with (
        Broker(config={"auto.create.topics.enable": False}) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        yield admin


def test_a_topic_lives_from_its_creation_to_its_deletion(admin):
    configs = {"retention.ms": "60000"}
    admin.create_topics([NewTopic("orders", 3, 1, topic_configs=configs)])
    assert admin.list_topics() == ["orders"]
    (described,) = admin.describe_topics(["orders"])
    assert [one["leader_id"] for one in described["partitions"]] == [1, 1, 1]
    found = admin.describe_configs([ConfigResource("topic", "orders")])
    assert {key: entry["value"] for key, entry in found["topic"]["orders"].items()} == configs
    with pytest.raises(TopicExistsError, match="topic 'orders'"):
        admin.create_topics(["orders"])
    admin.delete_topics(["orders"])
    assert admin.list_topics() == []
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'orders'"):
        admin.delete_topics(["orders"])


def test_a_name_that_is_none_is_refused(admin):
    with pytest.raises(InvalidTopicError, match="topic 'not a name'"):
        admin.create_topics(["not a name"])


def test_validation_creates_nothing(admin):
    admin.create_topics(["orders"], validate_only=True)
    assert admin.list_topics() == []


def test_the_cluster_is_described(admin):
    described = admin.describe_cluster()
    assert described["controller_id"] == 1
    assert [one["broker_id"] for one in described["brokers"]] == [1]


def test_a_brokers_configuration_is_described(admin):
    found = admin.describe_configs([ConfigResource("broker", "1")], config_filter="all")
    assert found["broker"]["1"]["auto.create.topics.enable"]["value"] == "false"
