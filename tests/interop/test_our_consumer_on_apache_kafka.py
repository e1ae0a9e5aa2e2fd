"""Our consumer on Apache Kafka 4.3, fed by and side by side with confluent-kafka."""

from collections.abc import Callable
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest

from pyclient import KafkaConsumer, OffsetAndMetadata, TopicPartition
from pyclient.errors import UnknownTopicIdError
from tests.interop.apache_kafka import ApacheKafka

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
RECORDS = 300


def create(apache: ApacheKafka, topic: str, partitions: int, **config: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": apache.bootstrap_servers})
    wanted = confluent_kafka.admin.NewTopic(topic, partitions, 1, config=config)
    admin.create_topics([wanted])[topic].result(30)


def produce(apache: ApacheKafka, topic: str, numbers: range, **options: Any) -> dict[Any, Any]:
    """What was written, by (partition, offset)."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": apache.bootstrap_servers, "linger.ms": 20, **options}
    )
    written = {}

    def on_delivery(error: Any, message: Any) -> None:
        assert error is None, error
        written[message.partition(), message.offset()] = (message.key(), message.value())

    for number in numbers:
        key = b"key-%d" % number if number % 3 else None
        value = b"value-%d" % number * (number % 40) if number % 7 else None
        producer.produce(
            topic, value, key, on_delivery=on_delivery, headers=[("n", b"%d" % number)]
        )
    assert producer.flush(30) == 0
    return written


def consumer_of(apache: ApacheKafka, *topics: str, **options: Any) -> KafkaConsumer:
    settings = {
        "bootstrap_servers": apache.bootstrap_servers,
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 100,
        **options,
    }
    return KafkaConsumer(*topics, **settings)


def read(consumer: KafkaConsumer, count: int) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    while len(found) < count:
        polled = consumer.poll(timeout_ms=30_000)
        assert polled, f"{len(found)} of {count} records, then nothing"
        for records in polled.values():
            found |= {(one.partition, one.offset): (one.key, one.value) for one in records}
    return found


def until(condition: Callable[[], object], *consumers: Any) -> None:
    """Poll all, ours and theirs, until the condition holds."""
    for _ in range(600):
        if condition():
            return
        for consumer in consumers:
            if isinstance(consumer, KafkaConsumer):
                consumer.poll(timeout_ms=50)
            else:
                consumer.poll(0.05)
    raise AssertionError("it did not come about")


@pytest.mark.parametrize("codec", CODECS)
def test_what_confluent_kafka_sends_is_what_we_read(apache: ApacheKafka, codec: str) -> None:
    topic = f"theirs-{codec}"
    written = produce(apache, topic, range(RECORDS), **{"compression.type": codec})
    with consumer_of(apache, topic) as consumer:
        assert read(consumer, RECORDS) == written
        consumer.seek_to_beginning()
        rows: list[Any] = []
        while len(rows) < RECORDS:
            rows += consumer.poll_arrow(timeout_ms=30_000, headers=True).to_pylist()
    assert {(r["partition"], r["offset"]): (r["key"], r["value"]) for r in rows} == written


def test_a_group_of_ours_and_theirs_shares_the_partitions(apache: ApacheKafka) -> None:
    create(apache, "shared", 4)
    theirs = confluent_kafka.Consumer(
        {
            "bootstrap.servers": apache.bootstrap_servers,
            "group.id": "mixed",
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
            "heartbeat.interval.ms": 100,
        }
    )
    theirs.subscribe(["shared"])
    with consumer_of(apache, "shared", group_id="mixed") as ours:

        def settled() -> bool:
            mine = {one.partition for one in ours.assignment()}
            yours = {one.partition for one in theirs.assignment()}
            return len(mine) == len(yours) == 2 and mine | yours == {0, 1, 2, 3}

        until(settled, ours, theirs)
        theirs.close()
        until(lambda: len(ours.assignment()) == 4, ours)


def test_a_group_goes_on_where_the_other_client_committed(apache: ApacheKafka) -> None:
    create(apache, "handed-over", 1)
    produce(apache, "handed-over", range(20))
    partition = TopicPartition("handed-over", 0)
    with consumer_of(
        apache, "handed-over", group_id="relay", enable_auto_commit=False, max_poll_records=5
    ) as ours:
        until(lambda: ours.assignment() and ours.position(partition) >= 5, ours)
        ours.commit()
        committed = ours.committed(partition)
    theirs = confluent_kafka.Consumer(
        {"bootstrap.servers": apache.bootstrap_servers, "group.id": "relay"}
    )
    wanted = confluent_kafka.TopicPartition("handed-over", 0)
    (found,) = theirs.committed([wanted], timeout=20)
    assert found.offset == committed
    theirs.commit(
        offsets=[confluent_kafka.TopicPartition("handed-over", 0, 17)], asynchronous=False
    )
    theirs.close()
    with consumer_of(apache, "handed-over", group_id="relay") as ours:
        assert min(offset for _, offset in read(ours, 3)) == 17


def test_read_committed_leaves_out_what_was_aborted(apache: ApacheKafka) -> None:
    create(apache, "transactions", 1)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": apache.bootstrap_servers, "transactional.id": "t"}
    )
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        for index in range(10):
            producer.produce("transactions", b"%d-%d" % (number, index))
        producer.flush(30)  # an abort would drop what was not sent
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    kept = {b"%d-%d" % (number, index) for number in (0, 2) for index in range(10)}
    with consumer_of(apache, "transactions", isolation_level="read_committed") as consumer:
        assert {value for _, value in read(consumer, 20).values()} == kept
        end = consumer.end_offsets([TopicPartition("transactions", 0)])
        until(lambda: consumer.position(TopicPartition("transactions", 0)) == 44, consumer)
    assert end == {TopicPartition("transactions", 0): 44}
    with consumer_of(apache, "transactions") as consumer:
        assert len(read(consumer, 40)) == 40


def test_a_static_member_comes_back_to_its_partitions(apache: ApacheKafka) -> None:
    create(apache, "static", 2)
    with consumer_of(apache, "static", group_id="s", group_instance_id="one") as other:
        member = consumer_of(apache, "static", group_id="s", group_instance_id="two")
        until(lambda: len(member.assignment()) == len(other.assignment()) == 1, member, other)
        before, generation = member.assignment(), other.group_metadata().generation_id
        member.close()
        with consumer_of(apache, "static", group_id="s", group_instance_id="two") as member:
            until(lambda: member.assignment() == before, member, other)
            assert other.group_metadata().generation_id == generation


def test_offsets_are_found_by_time(apache: ApacheKafka) -> None:
    create(apache, "timed", 1)
    producer = confluent_kafka.Producer({"bootstrap.servers": apache.bootstrap_servers})
    for number in range(10):
        producer.produce("timed", b"x", timestamp=1_000 + 100 * number)
    producer.flush(30)
    partition = TopicPartition("timed", 0)
    with consumer_of(apache) as consumer:
        found = consumer.offsets_for_times({partition: 1_250})[partition]
        assert found is not None
        assert found[:2] == (3, 1_300)
        assert consumer.offsets_for_times({partition: 9_999})[partition] is None
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 10}


def test_a_recreated_topic_is_read_from_its_beginning_by_a_group(apache: ApacheKafka) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": apache.bootstrap_servers})
    partition = TopicPartition("reborn", 0)
    create(apache, "reborn", 1)
    produce(apache, "reborn", range(5))
    options: dict[str, Any] = {"enable_auto_commit": False, "allow_auto_create_topics": False}
    with consumer_of(apache, "reborn", group_id="r", **options) as consumer:
        assert len(read(consumer, 5)) == 5
        consumer.commit()
        assert consumer.committed(partition) == 5
        admin.delete_topics(["reborn"])["reborn"].result(30)
        create(apache, "reborn", 1)
        produce(apache, "reborn", range(8))
        with pytest.raises(UnknownTopicIdError):
            consumer.commit({partition: OffsetAndMetadata(5)})
        assert consumer.committed(partition) is None  # the broker has deleted it with the topic
        assert len(read(consumer, 8)) == 8
        consumer.enforce_rebalance()
        assert len(read(consumer, 8)) == 8  # again: nothing was committed


def test_a_committed_offset_is_validated_with_the_leader(apache: ApacheKafka) -> None:
    partition = TopicPartition("validated", 0)
    create(apache, "validated", 1)
    produce(apache, "validated", range(20))
    with consumer_of(apache, "validated", group_id="v", max_poll_records=5) as consumer:
        read(consumer, 5)
    with consumer_of(apache, group_id="v") as consumer:
        committed = consumer.committed(partition, metadata=True)
        assert committed is not None
        assert committed.leader_epoch == 0
        consumer.assign([partition])
        assert len(read(consumer, 20 - committed.offset)) == 20 - committed.offset
        consumer.seek(partition, committed._replace(leader_epoch=7))  # nobody was elected so often
        assert len(read(consumer, 20)) == 20  # reset to the beginning
