"""Transactional programs of clients that share no code with us, on both transaction versions.

Each copies numbers from one topic to another, offsets included, as exactly-once programs do: some
transactions are aborted, one is left open by a program that dies, one by a zombie.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka import Producer as ConfluentProducer

from broker_stub import Broker
from pyclient import KafkaProducer

SOURCE, TARGET, GROUP = "numbers", "copies", "copiers"
COUNT = 30
SECONDS = 20


@pytest.fixture(params=[1, 2], ids=["version 1", "version 2"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    config = {
        "transaction.version": request.param,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
    }
    with Broker(config=config) as broker:
        broker.create_topic(SOURCE, partitions=1)
        broker.create_topic(TARGET, partitions=2)
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for number in range(COUNT):
                producer.send(SOURCE, b"%d" % number)
        yield broker


def read_committed(broker: Broker) -> list[bytes | None]:
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        values = []
        for index in (0, 1):
            consumer.assign([TopicPartition(TARGET, index, 0)])
            while True:
                message = consumer.poll(SECONDS)
                assert message is not None, "no end of the partition: something is undecided"
                if message.error() is not None:
                    break
                values.append(message.value())
        return values
    finally:
        consumer.close()


def check(broker: Broker) -> None:
    """Every number was copied once, and the group is behind the last one."""
    values = [int(value or b"-1") for value in read_committed(broker)]
    assert sorted(values) == list(range(COUNT))
    checker = ConfluentConsumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": GROUP, "log_level": 0}
    )
    try:
        (committed,) = checker.committed([TopicPartition(SOURCE, 0)], SECONDS)
    finally:
        checker.close()
    assert committed.offset == COUNT


# --- confluent-kafka -----------------------------------------------------------------------------


def confluent_producer(broker: Broker, **options: Any) -> ConfluentProducer:
    producer = ConfluentProducer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": "copier",
            "log_level": 0,
            **options,
        }
    )
    producer.init_transactions(SECONDS)
    return producer


def confluent(broker: Broker) -> None:
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.subscribe([SOURCE])
    zombie = confluent_producer(broker)
    zombie.begin_transaction()
    zombie.produce(TARGET, b"zombie")
    zombie.flush(SECONDS)
    producer = confluent_producer(broker)
    messages = []
    while len(messages) < COUNT:
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.error() is None
        messages.append(message)
    for number, first in enumerate(range(0, COUNT, 10)):
        part = messages[first : first + 10]
        for attempt in range(2):
            producer.begin_transaction()
            for message in part:
                producer.produce(TARGET, message.value(), partition=number % 2)
            position = TopicPartition(SOURCE, 0, first + len(part))
            producer.send_offsets_to_transaction(
                [position], consumer.consumer_group_metadata(), SECONDS
            )
            if attempt == 0:
                producer.abort_transaction(SECONDS)
            else:
                producer.commit_transaction(SECONDS)
    with pytest.raises(KafkaException, match="fenced"):
        zombie.commit_transaction(SECONDS)
    consumer.close()


# --- kafka-python --------------------------------------------------------------------------------


def kafka_python(broker: Broker) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.errors import KafkaError
    from kafka.structs import OffsetAndMetadata

    def started() -> Any:
        producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, transactional_id="copier"
        )
        producer.init_transactions()
        return producer

    consumer = KafkaConsumer(
        SOURCE,
        bootstrap_servers=broker.bootstrap_servers,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    zombie = started()
    zombie.begin_transaction()
    zombie.send(TARGET, b"zombie").get(SECONDS)
    producer = started()
    messages = [next(consumer) for _ in range(COUNT)]
    for number, first in enumerate(range(0, COUNT, 10)):
        part = messages[first : first + 10]
        for attempt in range(2):
            producer.begin_transaction()
            for message in part:
                producer.send(TARGET, message.value, partition=number % 2)
            position = {TopicPartition(SOURCE, 0): OffsetAndMetadata(part[-1].offset + 1, "", -1)}
            producer.send_offsets_to_transaction(position, GROUP)
            if attempt == 0:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with pytest.raises(KafkaError):
        zombie.commit_transaction()
    zombie.close(timeout=1)
    producer.close(timeout=5)
    consumer.close()


# --- aiokafka ------------------------------------------------------------------------------------


def aiokafka(broker: Broker) -> None:
    asyncio.run(asyncio.wait_for(_aiokafka(broker), 3 * SECONDS))


async def _aiokafka(broker: Broker) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.errors import KafkaError

    async def started() -> Any:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, transactional_id="copier"
        )
        await producer.start()
        return producer

    consumer = AIOKafkaConsumer(
        SOURCE,
        bootstrap_servers=broker.bootstrap_servers,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    await consumer.start()
    zombie = await started()
    await zombie.begin_transaction()
    await zombie.send_and_wait(TARGET, b"zombie")
    producer = await started()
    messages = [await consumer.getone() for _ in range(COUNT)]
    for number, first in enumerate(range(0, COUNT, 10)):
        part = messages[first : first + 10]
        for attempt in range(2):
            await producer.begin_transaction()
            for message in part:
                await producer.send(TARGET, message.value, partition=number % 2)
            position = {TopicPartition(SOURCE, 0): part[-1].offset + 1}
            await producer.send_offsets_to_transaction(position, GROUP)
            if attempt == 0:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
    with pytest.raises(KafkaError):
        await zombie.commit_transaction()
    for one in (producer, zombie, consumer):
        await one.stop()


@pytest.mark.parametrize("program", [confluent, kafka_python, aiokafka])
def test_a_copier_with_a_zombie_and_aborts_copies_every_record_once(
    broker: Broker, program: Callable[[Broker], None]
):
    program(broker)
    check(broker)


def test_a_transaction_of_a_program_that_died_times_out(broker: Broker):
    producer = confluent_producer(broker, **{"transaction.timeout.ms": 1000})
    producer.begin_transaction()
    producer.produce(TARGET, b"abandoned", partition=0)
    producer.flush(SECONDS)
    assert read_committed(broker) == []  # waits until it is decided
    with pytest.raises(KafkaException, match="fenced"):
        producer.commit_transaction(SECONDS)
