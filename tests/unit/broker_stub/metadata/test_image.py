"""The image, record by record."""

from broker_stub.config.listeners import Endpoint
from broker_stub.metadata.image import ClusterImage, PartitionImage
from pyclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

TOPIC_ID = b"t" * 16


def image_with_topic() -> ClusterImage:
    image = ClusterImage()
    image.apply(TopicRecord(name="a.b", topic_id=TOPIC_ID), 0)
    partition = PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=[1, 2],
        isr=[1, 2],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[b"d" * 16, b"e" * 16],
    )
    image.apply(partition, 1)
    return image


def test_a_topic_is_found_by_name_and_by_id():
    image = image_with_topic()
    assert image.topic("a.b") is image.topic_by_id(TOPIC_ID)
    assert [topic.name for topic in image.topics()] == ["a.b"]


def test_a_removed_topic_leaves_nothing_behind():
    image = image_with_topic()
    image.apply(ConfigRecord(resource_type=2, resource_name="a.b", name="k", value="v"), 2)
    removed = []
    image.on_topic_removed.append(removed.append)
    image.apply(RemoveTopicRecord(topic_id=TOPIC_ID), 3)
    assert [topic.name for topic in removed] == ["a.b"]
    assert image.topic("a.b") is None
    assert image.topic_by_id(TOPIC_ID) is None
    assert image.topic_config("a.b") == {}
    assert image.colliding_topic("a_b") is None


def test_topics_collide_in_dots_and_underscores():
    image = image_with_topic()
    assert image.colliding_topic("a_b") == "a.b"
    assert image.colliding_topic("a-b") is None


def test_a_change_of_leader_begins_an_epoch():
    image = image_with_topic()
    changed = []
    image.on_partition_changed.append(lambda topic, index: changed.append((topic.name, index)))
    image.apply(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=2, isr=[2]), 2)
    partition = image.topic("a.b").partitions[0]
    assert partition == PartitionImage(
        partition_id=0,
        leader=2,
        leader_epoch=1,
        partition_epoch=1,
        replicas=(1, 2),
        isr=(2,),
        directories=(b"d" * 16, b"e" * 16),
    )
    assert changed == [("a.b", 0)]


def test_a_change_of_the_isr_alone_does_not():
    image = image_with_topic()
    image.apply(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[1]), 2)
    partition = image.topic("a.b").partitions[0]
    assert (partition.leader_epoch, partition.partition_epoch, partition.isr) == (0, 1, (1,))


def test_configurations_are_set_and_removed_one_by_one():
    image = ClusterImage()
    for name, value in (("a", "1"), ("b", "2"), ("a", None)):
        image.apply(ConfigRecord(resource_type=2, resource_name="t", name=name, value=value), 0)
    assert image.topic_config("t") == {"b": "2"}


def test_a_broker_comes_with_its_endpoints_and_goes():
    image = ClusterImage()
    record = RegisterBrokerRecord(
        broker_id=1,
        broker_epoch=-1,
        fenced=False,
        end_points=[BrokerEndpoint(name="PLAINTEXT", host="h", port=9)],
    )
    image.apply(record, 7)
    broker = image.brokers[1]
    assert broker.endpoints == {"PLAINTEXT": Endpoint("PLAINTEXT", "h", 9)}
    assert broker.epoch == 7
    assert not broker.fenced
    image.apply(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=1), 8)
    assert image.brokers[1].fenced
    image.apply(UnregisterBrokerRecord(broker_id=1, broker_epoch=7), 9)
    assert image.brokers == {}


def test_producer_ids_go_on_where_the_last_block_ended():
    image = ClusterImage()
    image.apply(ProducerIdsRecord(broker_id=1, next_producer_id=3000), 0)
    assert image.next_producer_id == 3000


def test_records_of_no_meaning_here_are_known_as_such():
    assert not ClusterImage().knows(NoOpRecord())
    assert ClusterImage().knows(TopicRecord())
