"""Our admin client on Apache Kafka 4.3: the life of a topic."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyclient import KafkaAdminClient
from pyclient.admin import ConfigResource, NewTopic
from pyclient.errors import (
    InvalidPartitionsError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from tests.interop.apache_kafka import ApacheKafka


@pytest.fixture
def admin(apache: ApacheKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=apache.bootstrap_servers) as admin:
        yield admin


def test_a_topic_lives_from_its_creation_to_its_deletion(admin: KafkaAdminClient) -> None:
    configs = {"retention.ms": "60000", "cleanup.policy": "compact"}
    admin.create_topics([NewTopic("ours", 2, 1, topic_configs=configs)])
    assert "ours" in admin.list_topics()
    found = admin.describe_configs([ConfigResource("topic", "ours")])
    assert {key: entry["value"] for key, entry in found["topic"]["ours"].items()} == configs
    admin.create_partitions({"ours": 5})
    # Brokers learn of changes a moment later; the controller knows at once.
    with pytest.raises(InvalidPartitionsError, match="already has 5 partition"):
        admin.create_partitions({"ours": 5})
    admin.delete_topics(["ours"])
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'ours'"):
        admin.delete_topics(["ours"])


def test_what_the_broker_refuses_is_raised_by_name(admin: KafkaAdminClient) -> None:
    admin.create_topics({"refused": {"num_partitions": 2}})
    with pytest.raises(TopicExistsError, match="topic 'refused'"):
        admin.create_topics(["refused"])
    with pytest.raises(InvalidPartitionsError, match="topic 'refused'"):
        admin.create_partitions({"refused": 1})
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'nowhere'"):
        admin.delete_topics(["nowhere"])
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'nowhere'"):
        admin.describe_configs([ConfigResource("topic", "nowhere")])


def test_the_cluster_and_its_broker_are_described(admin: KafkaAdminClient) -> None:
    described = admin.describe_cluster()
    (broker,) = described["brokers"]
    node = str(broker["broker_id"])
    found = admin.describe_configs([ConfigResource("broker", node)], config_filter="all")
    assert found["broker"][node]["num.partitions"]["value"] == "4"
