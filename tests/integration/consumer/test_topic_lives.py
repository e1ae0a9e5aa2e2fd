"""Topics that go and come back under a consumer."""

import pytest

from pyclient import KafkaAdminClient, OffsetAndMetadata, TopicPartition
from pyclient.errors import NoOffsetForPartitionError, UnknownTopicIdError
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from pyclient.protocol.messages.offset_fetch import OffsetFetchRequest

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


ALL_EIGHT = [(0, number) for number in range(8)]


def test_offsets_of_the_old_topic_are_not_committed_for_the_new_one(
    new_consumer, fill, read, recreate
):
    fill("orders", count=5)
    consumer = new_consumer(
        "orders", group_id="kitchen", enable_auto_commit=False, allow_auto_create_topics=False
    )
    assert len(read(consumer, 5)) == 5
    recreate(count=8)
    with pytest.raises(UnknownTopicIdError):
        consumer.commit({P0: OffsetAndMetadata(5)})
    assert consumer.committed(P0) is None
    assert read(consumer, 8) == ALL_EIGHT
    consumer.enforce_rebalance()
    assert read(consumer, 8) == ALL_EIGHT  # again: nothing was committed


def test_automatic_commits_go_on_in_a_recreated_topic(new_consumer, fill, read, recreate):
    fill("orders", count=5)
    consumer = new_consumer(
        "orders", group_id="kitchen", auto_commit_interval_ms=0, allow_auto_create_topics=False
    )
    assert len(read(consumer, 5)) == 5
    recreate(count=8)
    assert read(consumer, 8) == ALL_EIGHT
    consumer.enforce_rebalance()
    fill("orders", count=1, first=8)
    assert read(consumer, 1) == [(0, 8)]
    consumer.commit()
    assert consumer.committed(P0) == 9


@pytest.fixture
def commit_by_name(kafka_broker, new_consumer, fill, read, recreate):
    """Commit offset 5 of a topic that was recreated before its consumer heard of it.

    Brokers before Kafka 4.1 take it for the new topic, which has eight records.
    """
    kafka_broker.faults.hide(OffsetCommitRequest, above=9)
    kafka_broker.faults.hide(OffsetFetchRequest, above=9)
    fill("orders", count=5)
    consumer = new_consumer(
        "orders",
        group_id="kitchen",
        enable_auto_commit=False,
        fetch_max_wait_ms=10,
        allow_auto_create_topics=False,
    )
    assert len(read(consumer, 5)) == 5
    consumer.pause(P0)
    assert consumer.poll(timeout_ms=100) == {}  # the last fetch is over: it hears of nothing now
    recreate(count=8)
    consumer.commit()
    return consumer


def test_a_commit_by_name_that_hit_the_new_topic_is_not_read_from(commit_by_name, read, caplog):
    consumer = commit_by_name
    consumer.resume(P0)
    assert read(consumer, 8) == ALL_EIGHT
    consumer.enforce_rebalance()
    assert read(consumer, 8) == ALL_EIGHT
    assert "ignoring offset 5" in caplog.text


def test_another_member_takes_a_commit_by_name_for_one_of_the_new_topic_as_java_does(
    commit_by_name, new_consumer, read
):
    commit_by_name.close(autocommit=False)
    successor = new_consumer("orders", group_id="kitchen", enable_auto_commit=False)
    assert read(successor, 3) == ALL_EIGHT[5:]
