"""Partitions, records and configurations changed by foreign admin clients."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaProducer, TopicPartition
from kafka import admin as kafka_python_admin
from kafka.admin import ConfigResourceType, KafkaAdminClient
from kafka.errors import InvalidPartitionsError, OffsetOutOfRangeError, SecurityDisabledError

from tests.support.broker_load import create_topic
from tests.support.server_process import ServerProcess

TIMEOUT_SECONDS = 30
OFFSET_OUT_OF_RANGE, INVALID_PARTITIONS, INVALID_CONFIG, INVALID_REPLICA_ASSIGNMENT = 1, 37, 40, 39
SECURITY_DISABLED = 54

_numbers = count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def bootstrap(folder: Path) -> Iterator[str]:
    with ServerProcess("--data-dir", folder) as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def confluent(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture(scope="module")
def kafka_python(bootstrap: str) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield admin
    admin.close()


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A topic of two partitions, with ten records in the first."""
    name = f"topic-{next(_numbers)}"
    create_topic(bootstrap, name, 2)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for _ in range(10):
        producer.send(name, b"value", partition=0)
    producer.close()
    return name


def result(futures):
    (future,) = futures.values()
    return future.result(TIMEOUT_SECONDS)


def failure(futures) -> int:
    with pytest.raises(KafkaException) as raised:
        result(futures)
    return raised.value.args[0].code()


def configured(confluent: AdminClient, kind: ResourceType, name: str) -> dict[str, str]:
    entries = result(confluent.describe_configs([ConfigResource(kind, name)]))
    changed = {entry.name: entry.value for entry in entries.values() if not entry.is_default}
    assert changed.pop("min.insync.replicas") == "1"  # set for the cluster, as in Apache Kafka 4.3
    return changed


def test_confluent_lets_a_topic_grow(confluent, topic):
    result(confluent.create_partitions([NewPartitions(topic, 5)]))
    assert len(confluent.list_topics(topic, TIMEOUT_SECONDS).topics[topic].partitions) == 5
    described = result(confluent.describe_topics(TopicCollection([topic])))
    assert [partition.leader.id for partition in described.partitions] == [1] * 5
    assert failure(confluent.create_partitions([NewPartitions(topic, 5)])) == INVALID_PARTITIONS
    by_hand = NewPartitions(topic, 6, replica_assignment=[[9]])
    assert failure(confluent.create_partitions([by_hand])) == INVALID_REPLICA_ASSIGNMENT


def test_kafka_python_lets_a_topic_grow(kafka_python, topic):
    kafka_python.create_partitions({topic: 4})
    (described,) = kafka_python.describe_topics([topic])
    assert len(described["partitions"]) == 4
    with pytest.raises(InvalidPartitionsError):
        kafka_python.create_partitions({topic: 4})


def test_confluent_creates_topics_by_hand_and_only_validates(confluent):
    by_hand = NewTopic("by-hand", 3, replica_assignment=[[1], [1], [1]])
    result(confluent.create_topics([by_hand], validate_only=True))
    assert "by-hand" not in confluent.list_topics(timeout=TIMEOUT_SECONDS).topics
    result(confluent.create_topics([by_hand]))
    assert len(confluent.list_topics(timeout=TIMEOUT_SECONDS).topics["by-hand"].partitions) == 3


def test_confluent_deletes_records(confluent, topic):
    deleted = result(confluent.delete_records([ConfluentPartition(topic, 0, 4)]))
    assert deleted.low_watermark == 4
    past_the_end = [ConfluentPartition(topic, 0, 11)]
    assert failure(confluent.delete_records(past_the_end)) == OFFSET_OUT_OF_RANGE


def test_kafka_python_deletes_records(kafka_python, topic):
    partition = TopicPartition(topic, 0)
    deleted = kafka_python.delete_records({partition: 6})
    assert deleted[partition]["low_watermark"] == 6
    with pytest.raises(OffsetOutOfRangeError):
        kafka_python.delete_records({partition: 11})


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated")
def test_confluent_replaces_a_configuration(confluent, topic):
    kind = ConfigResource.Type.TOPIC
    for config in ({"retention.ms": "1", "flush.ms": "2"}, {"flush.ms": "3"}):
        result(confluent.alter_configs([ConfigResource(kind, topic, set_config=config)]))
        assert configured(confluent, kind, topic) == config
    unknown = ConfigResource(kind, topic, set_config={"no.such.key": "1"})
    assert failure(confluent.alter_configs([unknown])) == INVALID_CONFIG


def test_confluent_changes_a_configuration_bit_by_bit(confluent, topic):
    kind = ConfigResource.Type.TOPIC

    def change(name: str, value: str | None, operation: AlterConfigOpType):
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(kind, topic, incremental_configs=[entry])
        return confluent.incremental_alter_configs([resource])

    result(change("retention.ms", "1000", AlterConfigOpType.SET))
    result(change("cleanup.policy", "compact", AlterConfigOpType.APPEND))
    assert configured(confluent, kind, topic) == {
        "retention.ms": "1000",
        "cleanup.policy": "delete,compact",
    }
    result(change("retention.ms", None, AlterConfigOpType.DELETE))
    result(change("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT))
    assert configured(confluent, kind, topic) == {"cleanup.policy": "compact"}
    assert failure(change("flush.ms", "soon", AlterConfigOpType.SET)) == INVALID_CONFIG


def test_confluent_changes_the_defaults_of_topics_on_the_broker(confluent, topic):
    kind = ConfigResource.Type.BROKER
    entry = ConfigEntry(
        "log.flush.interval.ms", "12345", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(kind, "1", incremental_configs=[entry])
    result(confluent.incremental_alter_configs([resource]))
    assert configured(confluent, kind, "1") == {"log.flush.interval.ms": "12345"}
    assert configured(confluent, ConfigResource.Type.TOPIC, topic) == {"flush.ms": "12345"}
    entry.incremental_operation = AlterConfigOpType.DELETE
    result(confluent.incremental_alter_configs([resource]))
    assert configured(confluent, ConfigResource.Type.TOPIC, topic) == {}


def test_kafka_python_changes_configurations_both_ways(kafka_python, topic):
    def resource(**configs: str):
        options = {name.replace("_", "."): value for name, value in configs.items()}
        return kafka_python_admin.ConfigResource(ConfigResourceType.TOPIC, topic, configs=options)

    def changed() -> dict[str, str]:
        wanted = kafka_python_admin.ConfigResource(ConfigResourceType.TOPIC, topic)
        entries = kafka_python.describe_configs([wanted])["topic"][topic]
        return {name: entry["value"] for name, entry in entries.items()}

    assert kafka_python.alter_configs([resource(retention_ms="5000")]) == {"topic": {topic: "OK"}}
    assert changed() == {"retention.ms": "5000"}
    kafka_python.alter_configs([resource(segment_ms="7000")], incremental=False)
    assert changed()["segment.ms"] == "7000"
    kafka_python.reset_configs([resource(segment_ms="")])
    assert "segment.ms" not in changed()


def test_kafka_python_looks_into_the_log_dirs_and_at_producers(folder, kafka_python, topic):
    (described,) = kafka_python.describe_log_dirs()
    (log_dir,) = described["log_dirs"]
    assert log_dir["log_dir"] == str(folder)
    sizes = {one["name"]: one["partitions"][0]["partition_size"] for one in log_dir["topics"]}
    assert sizes[topic] > 100
    partition = TopicPartition(topic, 0)
    (producer,) = kafka_python.describe_producers([partition])[partition].active_producers
    assert producer.last_sequence == 9


def test_kafka_python_pages_through_partitions(kafka_python, topic):
    first = kafka_python.describe_topic_partitions([topic], response_partition_limit=1)
    assert len(first["topics"][0]["partitions"]) == 1
    assert first["next_cursor"]["partition_index"] == 1


def test_both_are_told_that_there_are_no_acls(confluent, kafka_python):
    entry = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:a",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    assert failure(confluent.create_acls([entry])) == SECURITY_DISABLED
    everything = kafka_python_admin.ACLFilter(
        None,
        "*",
        kafka_python_admin.ACLOperation.ANY,
        kafka_python_admin.ACLPermissionType.ANY,
        kafka_python_admin.ResourcePatternFilter(
            kafka_python_admin.ResourceType.ANY,
            None,
            kafka_python_admin.ACLResourcePatternType.ANY,
        ),
    )
    with pytest.raises(SecurityDisabledError):
        kafka_python.describe_acls(everything)
