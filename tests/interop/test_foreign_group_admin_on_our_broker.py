"""Groups listed, described and deleted by foreign admin clients, on a process of ours."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata

from tests.support.broker_load import create_topic
from tests.support.server_process import ServerProcess

TIMEOUT_SECONDS = 30
NON_EMPTY_GROUP = 68


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with ServerProcess() as running:
        create_topic(running.bootstrap_servers, "orders", 2)
        yield running.bootstrap_servers


def test_confluent_lists_describes_and_deletes_groups(bootstrap):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "confluent"})
    joined = []
    consumer.subscribe(["orders"], on_assign=lambda _, partitions: joined.append(partitions))
    while not joined:
        consumer.poll(1)
    listed = admin.list_consumer_groups().result(TIMEOUT_SECONDS)
    assert ("confluent", False) in {
        (one.group_id, one.is_simple_consumer_group) for one in listed.valid
    }
    (future,) = admin.describe_consumer_groups(["confluent"]).values()
    described = future.result(TIMEOUT_SECONDS)
    assert described.state is ConsumerGroupState.STABLE
    (member,) = described.members
    assert {one.partition for one in member.assignment.topic_partitions} == {0, 1}
    (future,) = admin.delete_consumer_groups(["confluent"]).values()
    with pytest.raises(KafkaException) as raised:
        future.result(TIMEOUT_SECONDS)
    assert raised.value.args[0].code() == NON_EMPTY_GROUP
    consumer.close()
    (future,) = admin.delete_consumer_groups(["confluent"]).values()
    future.result(TIMEOUT_SECONDS)
    listed = admin.list_consumer_groups().result(TIMEOUT_SECONDS)
    assert "confluent" not in {one.group_id for one in listed.valid}


def test_kafka_python_lists_describes_and_deletes_groups(bootstrap):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id="theirs", enable_auto_commit=False
    )
    partition = TopicPartition("orders", 0)
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(0, "", -1)})
    consumer.close()
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        assert "theirs" in str(admin.list_groups())
        described = admin.describe_groups(["theirs"])
        assert described["theirs"]["group_state"] == "Empty"
        admin.delete_groups(["theirs"])
        assert "theirs" not in str(admin.list_groups())
    finally:
        admin.close()
