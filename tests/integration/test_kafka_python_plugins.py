"""Assignors and partitioners that were written for kafka-python, with the package replaced."""

from typing import Any

from broker_stub import Broker
from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.coordinator.assignors.abstract import AbstractPartitionAssignor
from pyclient.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from pyclient.partitioner import DefaultPartitioner, StickyPartitioner


class FirstMemberTakesAll(AbstractPartitionAssignor):
    name = "first"  # type: ignore[assignment]
    version = 0
    assigned: list[TopicPartition] = []

    def assign(self, cluster: Any, members: Any) -> Any:
        first = min(members)
        taken = [
            (topic, sorted(cluster.partitions_for_topic(topic)))
            for topic in members[first].subscription
        ]
        return {
            member: ConsumerProtocolMemberAssignment(0, taken if member == first else [], b"")
            for member in members
        }

    def metadata(self, topics: Any) -> Any:
        return ConsumerProtocolMemberMetadata(self.version, list(topics), b"")

    def on_assignment(self, assignment: Any) -> None:  # type: ignore[override]
        type(self).assigned = assignment.partitions()


def test_an_assignor_for_kafka_python_assigns(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("orders", partitions=3)
    with KafkaConsumer(
        "orders",
        bootstrap_servers=kafka_broker.bootstrap_servers,
        group_id="g",
        partition_assignment_strategy=[FirstMemberTakesAll],
    ) as consumer:
        while not consumer.assignment():
            consumer.poll(timeout_ms=100)
        everything = {TopicPartition("orders", number) for number in range(3)}
        assert consumer.assignment() == everything
    assert set(FirstMemberTakesAll.assigned) == everything


class LastPartition(DefaultPartitioner):
    def partition(self, topic, key, serialized_key, value, serialized_value, cluster):
        assert topic in cluster.topics()
        assert cluster.brokers()
        last = max(cluster.available_partitions_for_topic(topic) & {0, 1, 2})
        assert cluster.leader_for_partition(TopicPartition(topic, last)) is not None
        return last


def test_a_partitioner_sees_kafka_pythons_cluster(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("orders", partitions=3)
    servers = kafka_broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers, partitioner=LastPartition()) as producer:
        assert producer.send("orders", b"v", b"k").get(10).partition == 2


def test_the_sticky_partitioner_is_the_default(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("orders", partitions=3)
    servers = kafka_broker.bootstrap_servers
    found = []
    for options in ({"partitioner": StickyPartitioner()}, {}):
        with KafkaProducer(bootstrap_servers=servers, **options) as producer:
            found.append(
                [producer.send("orders", b"v", b"%d" % n).get(10).partition for n in range(9)]
            )
    assert found[0] == found[1]
