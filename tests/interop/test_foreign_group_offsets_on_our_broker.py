"""Commits, resets by time and lag, by three libraries' consumers and admin clients."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.confluent_client import Confluent
from tests.interop.foreign_records import Record
from tests.support.broker_load import create_topic
from tests.support.server_process import ServerProcess

TOPIC = "orders"
RECORDS = 10
START_MS = 1_700_000_000_000  # a second per record
TIMEOUT_SECONDS = 30


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with ServerProcess("--config", "log.retention.ms=-1") as running:
        create_topic(running.bootstrap_servers, TOPIC, 1)
        records = [Record(0, None, b"%d" % n, (), START_MS + n * 1000) for n in range(RECORDS)]
        Confluent().produce(running.bootstrap_servers, TOPIC, records)
        yield running.bootstrap_servers


def test_confluent_commits_resets_by_time_and_tells_the_lag(bootstrap):
    from confluent_kafka import (
        Consumer,
        ConsumerGroupTopicPartitions,
        TopicPartition,
    )
    from confluent_kafka.admin import AdminClient, OffsetSpec

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "confluent",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    read = consumer.consume(4, TIMEOUT_SECONDS)
    assert [one.value() for one in read] == [b"0", b"1", b"2", b"3"]
    consumer.commit(read[-1], asynchronous=False)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    partition = TopicPartition(TOPIC, 0)

    def lag() -> int:
        (future,) = admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions("confluent")]
        ).values()
        (committed,) = future.result(TIMEOUT_SECONDS).topic_partitions
        (ends,) = admin.list_offsets({partition: OffsetSpec.latest()}).values()
        end: int = ends.result(TIMEOUT_SECONDS).offset
        return end - int(committed.offset)

    assert lag() == 6
    target = consumer.offsets_for_times(
        [TopicPartition(TOPIC, 0, START_MS + 6_500)], TIMEOUT_SECONDS
    )
    assert target[0].offset == 7
    reset = [ConsumerGroupTopicPartitions("confluent", target)]
    (future,) = admin.alter_consumer_group_offsets(reset).values()
    (refused,) = future.result(TIMEOUT_SECONDS).topic_partitions
    assert refused.error.name() == "UNKNOWN_MEMBER_ID"  # the group has members, and this is none
    consumer.close()
    (future,) = admin.alter_consumer_group_offsets(reset).values()
    future.result(TIMEOUT_SECONDS)
    assert lag() == 3


def test_kafka_python_commits_resets_by_time_and_tells_the_lag(bootstrap):
    from kafka import KafkaConsumer, TopicPartition
    from kafka.admin import KafkaAdminClient

    partition = TopicPartition(TOPIC, 0)

    def consumer() -> Any:
        return KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id="kafka-python",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=4,
        )

    first = consumer()
    first.assign([partition])
    assert len(first.poll(timeout_ms=TIMEOUT_SECONDS * 1000)[partition]) == 4
    first.commit()
    assert first.committed(partition) == 4
    assert first.end_offsets([partition])[partition] - first.position(partition) == 6
    found = first.offsets_for_times({partition: START_MS + 6_500})[partition]
    first.seek(partition, found.offset)
    first.commit()
    first.close()
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        assert "offset=7" in str(admin.list_group_offsets("kafka-python"))
    finally:
        admin.close()
    second = consumer()
    second.subscribe([TOPIC])
    values: list[bytes] = []
    while not values:
        values = [one.value for many in second.poll(1000).values() for one in many]
    second.close()
    assert values == [b"7", b"8", b"9"]


def test_aiokafka_commits_resets_by_time_and_tells_the_lag(bootstrap):
    asyncio.run(_aiokafka(bootstrap))


async def _aiokafka(bootstrap: str) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient

    partition = TopicPartition(TOPIC, 0)
    consumer: Any = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id="aiokafka",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    admin: Any = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await consumer.start()
    await admin.start()
    try:
        for number in range(4):
            assert (await consumer.getone()).value == b"%d" % number
        await consumer.commit()
        offsets = await admin.list_consumer_group_offsets("aiokafka")
        ends = await consumer.end_offsets([partition])
        assert ends[partition] - offsets[partition].offset == 6
        found = await consumer.offsets_for_times({partition: START_MS + 6_500})
        consumer.seek(partition, found[partition].offset)
        assert (await consumer.getone()).value == b"7"
        await consumer.commit()
        offsets = await admin.list_consumer_group_offsets("aiokafka")
        assert offsets[partition].offset == 8
    finally:
        await admin.close()
        await consumer.stop()
