"""Topics that grow, are deleted, or are recreated while a producer sends to them."""

import pytest

from pyclient import KafkaAdminClient


@pytest.fixture
def admin(kafka_broker):
    with KafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap_servers) as admin:
        yield admin


def seen_by(producer, topic, count):
    """Refresh the producer's metadata until a topic has `count` partitions."""
    metadata = producer._core.engine.metadata
    while len((snapshot := metadata.snapshot).partitions_for_topic(topic) or ()) != count:
        metadata.request_update()
        metadata.wait_for_update(snapshot, 10_000)


def test_new_partitions_get_keys_and_records_without_one(kafka_broker, new_producer, admin):
    kafka_broker.create_topic("orders", partitions=1)
    producer = new_producer(batch_size=100)
    producer.send("orders", b"v").get(10)
    admin.create_partitions({"orders": 4})
    assert producer.send("orders", b"v", partition=3).get(10).partition == 3
    seen_by(producer, "orders", 4)
    keyed = [producer.send("orders", b"v", key=b"%d" % number) for number in range(50)]
    others = [producer.send("orders", b"v" * 100) for _ in range(200)]
    producer.flush(timeout=20)
    assert {future.get(0).partition for future in keyed} == {0, 1, 2, 3}
    assert {future.get(0).partition for future in others} == {0, 1, 2, 3}


def test_a_topic_recreated_with_fewer_partitions_is_sent_to(kafka_broker, new_producer, admin):
    kafka_broker.create_topic("orders", partitions=20)
    producer = new_producer(allow_auto_create_topics=False)
    for number in range(20):
        producer.send("orders", b"old", partition=number)
    producer.flush(timeout=20)
    admin.delete_topics(["orders"])
    kafka_broker.create_topic("orders", partitions=2)
    seen_by(producer, "orders", 2)
    futures = [producer.send("orders", b"new") for _ in range(3)]
    futures += [producer.send("orders", b"new", key=b"%d" % number) for number in range(20)]
    producer.flush(timeout=20)
    assert {future.get(0).partition for future in futures} == {0, 1}
    assert producer.partitions_for("orders") == {0, 1}
    with pytest.raises(ValueError, match="has 2 partitions"):
        producer.send("orders", b"v", partition=2)
    assert producer._core.pool.available == producer._core.pool.total


def test_records_under_way_reach_the_topic_of_the_same_name(kafka_broker, new_producer, admin):
    kafka_broker.create_topic("orders", partitions=1)
    producer = new_producer(allow_auto_create_topics=False)
    producer.send("orders", b"old").get(10)
    admin.delete_topics(["orders"])
    futures = [producer.send("orders", b"%d" % number) for number in range(100)]
    kafka_broker.create_topic("orders", partitions=1)
    producer.flush(timeout=20)
    assert [future.get(0).offset for future in futures] == list(range(100))
