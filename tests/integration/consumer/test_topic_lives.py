"""Topics that go and come back under a consumer."""

import pytest

from pyclient import KafkaAdminClient, TopicPartition
from pyclient.errors import NoOffsetForPartitionError

P0 = TopicPartition("orders", 0)


@pytest.fixture
def recreate(servers, fill):
    """Delete the topic, and make it again with other records."""

    def recreate(count):
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.delete_topics(["orders"])
        fill("orders", count=count)

    return recreate


def test_a_recreated_topic_is_read_from_its_beginning(new_consumer, fill, read, recreate, caplog):
    fill("orders", count=5)
    consumer = new_consumer("orders", metadata_max_age_ms=300, allow_auto_create_topics=False)
    assert len(read(consumer, 5)) == 5
    recreate(count=8)  # more than before: the old position is a valid offset
    assert read(consumer, 8) == [(0, number) for number in range(8)]
    assert "deleted and recreated" in caplog.text


def test_a_recreated_topic_without_a_reset_is_an_error(new_consumer, fill, read, recreate):
    fill("orders", count=5)
    consumer = new_consumer(
        metadata_max_age_ms=300, auto_offset_reset="none", allow_auto_create_topics=False
    )
    consumer.assign([P0])
    consumer.seek(P0, 0)
    assert len(read(consumer, 5)) == 5
    recreate(count=8)
    with pytest.raises(NoOffsetForPartitionError, match="orders-0"):
        consumer.poll(timeout_ms=20_000)
    consumer.seek(P0, 6)
    assert read(consumer, 2) == [(0, 6), (0, 7)]
