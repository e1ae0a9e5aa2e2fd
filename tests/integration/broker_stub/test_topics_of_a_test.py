"""What a broker offers a test: its records and topics, and names of topics in logged requests."""

import pytest

from broker_stub import Broker
from pyclient import KafkaConsumer, KafkaProducer
from pyclient.errors import UnknownTopicOrPartitionError
from pyclient.protocol.messages.fetch import FetchRequest
from pyclient.protocol.messages.produce import ProduceRequest


def test_the_records_of_a_topic_can_be_read_without_a_client(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("orders", partitions=2)
    with KafkaProducer(
        bootstrap_servers=kafka_broker.bootstrap_servers, compression_type="gzip"
    ) as producer:
        for number in range(6):
            producer.send("orders", b"%d" % number, b"k", [("h", b"v")], partition=number % 2)
    kafka_broker.requests.clear()
    records = kafka_broker.records("orders")
    assert [(one.partition, one.offset, one.value) for one in records] == [
        (0, 0, b"0"), (0, 1, b"2"), (0, 2, b"4"), (1, 0, b"1"), (1, 1, b"3"), (1, 2, b"5"),
    ]  # fmt: skip
    assert {(one.topic, one.key, *one.headers) for one in records} == {
        ("orders", b"k", ("h", b"v"))
    }
    assert kafka_broker.records("orders", partition=1) == records[3:]
    assert kafka_broker.requests.count() == 0


def test_the_records_of_what_does_not_exist_are_an_error(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("orders")
    for arguments in (("missing",), ("orders", 7)):
        with pytest.raises(UnknownTopicOrPartitionError):
            kafka_broker.records(*arguments)


def test_a_topic_can_be_deleted_and_created_again(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("orders")
    with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
        producer.send("orders", b"v").get(10)
    kafka_broker.delete_topic("orders")
    with pytest.raises(UnknownTopicOrPartitionError):
        kafka_broker.delete_topic("orders")
    kafka_broker.create_topic("orders")
    assert kafka_broker.records("orders") == []


def test_logged_requests_that_name_topics_by_id_have_their_names(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("orders")
    servers = kafka_broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send("orders", b"v").get(10)
    with KafkaConsumer("orders", bootstrap_servers=servers, auto_offset_reset="earliest") as reader:
        assert next(reader).value == b"v"
    produced = kafka_broker.requests.received(ProduceRequest)[0]
    fetched = kafka_broker.requests.received(FetchRequest)[0]
    assert produced.api_version >= 13
    assert fetched.api_version >= 13
    assert [one.name for one in produced.message.topic_data] == ["orders"]
    assert [one.topic for one in fetched.message.topics] == ["orders"]
    assert any(fetched.message.topics[0].topic_id)
