"""What each client does in a `WireWorld`, from construction to close, and checks of the result."""

from typing import Any

from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer
from pyclient.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.support.wire_worlds import TOPIC, VALUES, WireWorld

PATIENCE_SECONDS = 20


def produce(world: WireWorld, **options: Any) -> None:
    """One record, and it is there once."""
    with KafkaProducer(**{**world.options, "linger_ms": 0, **options}) as producer:
        sent = producer.send(TOPIC, b"value", partition=0).get(PATIENCE_SECONDS)
    assert sent.offset == 0
    assert world.log.values(TOPIC, 0) == [b"value"]


def consume(world: WireWorld, **options: Any) -> None:
    """Join a group, read all records in order, commit, leave."""
    found: list[bytes] = []
    settings = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with KafkaConsumer(TOPIC, **{**settings, **world.options, **options}) as consumer:
        while len(found) < len(VALUES):
            polled = consumer.poll(timeout_ms=PATIENCE_SECONDS * 1000)
            assert polled, "the time is up"
            found += [record.value for records in polled.values() for record in records]
        consumer.commit()
    assert found == VALUES
    assert world.group.committed == len(VALUES)


def administer(world: WireWorld, **options: Any) -> None:
    """A topic is created."""
    result = CreatableTopicResult(name="new", num_partitions=1, replication_factor=1)
    world.broker.on(CreateTopicsRequest, CreateTopicsResponse(topics=[result]))
    with KafkaAdminClient(**{**world.options, **options}) as admin:
        admin.create_topics({"new": {"num_partitions": 1}})
    assert world.broker.received(CreateTopicsRequest)


CLIENTS = (produce, consume, administer)
