"""Programs for confluent-kafka give the same results on it and on `pyclient.compat.confluent`."""

import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest

from broker_stub import Broker
from pyclient.compat import confluent
from pyclient.compat.confluent import admin as confluent_admin

DEADLINE_S = 20


def producing(kafka: ModuleType, servers: str, topic: str) -> Any:
    """Keys, headers, timestamps, partitions, and the reports of all of them."""
    reports = []

    def report(error: Any, message: Any) -> None:
        reports.append(
            (
                error,
                message.partition(),
                message.offset(),
                message.key(),
                message.value(),
                message.timestamp()[0],
                message.latency() >= 0,
            )
        )

    producer = kafka.Producer({"bootstrap.servers": servers, "linger.ms": 5})
    for number in range(30):
        producer.produce(topic, f"value-{number}", key=f"key-{number}", on_delivery=report)
    headers = {"a": b"1", "b": None}
    producer.produce(topic, b"with headers", partition=1, headers=headers, callback=report)
    producer.produce(topic, b"placed", partition=2, timestamp=1_700_000_000_000, callback=report)
    producer.produce(topic, None, key=b"tombstone", callback=report)
    left = producer.flush(DEADLINE_S)
    producer.close()
    return left, len(producer), sorted(map(repr, reports)), len(reports)


def consuming(kafka: ModuleType, servers: str, topic: str) -> Any:
    """A group with rebalance callbacks, ends of partitions, commits and positions."""
    _fill(kafka, servers, topic)
    happened: list[Any] = []
    options = {
        "bootstrap.servers": servers,
        "group.id": f"group of {topic}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = kafka.Consumer(options)
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: happened.append(("assigned", sorted(partitions))),
        on_revoke=lambda _, partitions: happened.append(("revoked", sorted(partitions))),
    )
    read, ends = [], set()
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline and (len(read) < 30 or len(ends) < 3):
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is not None:
            assert message.error().code() == kafka.KafkaError._PARTITION_EOF
            ends.add((message.partition(), message.offset()))
            continue
        read.append((message.partition(), message.offset(), message.key(), message.value()))
    committed = consumer.commit(asynchronous=False)
    partitions = [kafka.TopicPartition(topic, number) for number in range(3)]
    looked_up = consumer.committed(partitions, timeout=10)
    marks = [consumer.get_watermark_offsets(one, timeout=10) for one in partitions]
    assigned = sorted(consumer.assignment())
    consumer.close()
    with pytest.raises(RuntimeError, match="closed"):
        consumer.poll(0)
    return (
        sorted(read),
        sorted(ends),
        _places(committed),
        _places(looked_up),
        marks,
        [one.partition for one in assigned],
        [(what, [one.partition for one in partitions]) for what, partitions in happened],
    )


def storing_offsets(kafka: ModuleType, servers: str, topic: str) -> Any:
    """Offsets that the program stores are what is committed."""
    _fill(kafka, servers, topic)
    options = {
        "bootstrap.servers": servers,
        "group.id": f"group of {topic}",
        "auto.offset.reset": "earliest",
        "enable.auto.offset.store": False,
        "auto.commit.interval.ms": 100,
    }
    consumer = kafka.Consumer(options)
    consumer.subscribe([topic])
    messages: list[Any] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(messages) < 30 and time.monotonic() < deadline:
        messages += consumer.consume(30 - len(messages), timeout=1)
    first = min(message.offset() for message in messages if message.partition() == 1)
    consumer.store_offsets(offsets=[kafka.TopicPartition(topic, 1, first + 2)])
    consumer.close()
    other = kafka.Consumer({"bootstrap.servers": servers, "group.id": f"group of {topic}"})
    found = other.committed([kafka.TopicPartition(topic, number) for number in range(3)], 10)
    other.close()
    return sorted(message.value() for message in messages), _places(found)


def assigning(kafka: ModuleType, servers: str, topic: str) -> Any:
    """Assigned partitions, offsets to start from, seeks, pauses and lookups by time."""
    _fill(kafka, servers, topic)
    consumer = kafka.Consumer({"bootstrap.servers": servers, "group.id": "none"})
    steps = []

    def read(count: int) -> list[Any]:
        found: list[Any] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(found) < count and time.monotonic() < deadline:
            found += consumer.consume(count - len(found), timeout=0.5)
        return sorted((one.partition(), one.offset()) for one in found)

    consumer.assign([kafka.TopicPartition(topic, 0, 3)])
    steps.append(read(2))
    consumer.incremental_assign([kafka.TopicPartition(topic, 1, kafka.OFFSET_BEGINNING)])
    steps.append(sorted(one.partition for one in consumer.assignment()))
    consumer.pause([kafka.TopicPartition(topic, 0)])
    steps.append(read(1))  # librdkafka may ignore a seek before the partition is read
    consumer.seek(kafka.TopicPartition(topic, 1, 2))
    steps.append(read(1))
    consumer.resume([kafka.TopicPartition(topic, 0)])
    consumer.incremental_unassign([kafka.TopicPartition(topic, 1)])
    steps.append([one.partition for one in consumer.assignment()])
    times = consumer.offsets_for_times(
        [kafka.TopicPartition(topic, 0, 0), kafka.TopicPartition(topic, 1, 2**42)], timeout=10
    )
    steps.append(_places(times))
    consumer.unassign()
    steps.append(consumer.assignment())
    consumer.close()
    return steps


def refusing(kafka: ModuleType, servers: str, topic: str) -> Any:
    """The classes and codes of errors."""
    errors = []

    def attempt(call: Callable[[], object]) -> None:
        try:
            call()
        except kafka.KafkaException as error:
            errors.append(error.args[0].code())
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            errors.append(type(error))
        else:
            errors.append(None)

    producer = kafka.Producer({"bootstrap.servers": servers})
    attempt(lambda: kafka.Producer({"bootstrap.servers": servers, "no.such.option": 1}))
    attempt(lambda: kafka.Consumer({"bootstrap.servers": servers}))
    attempt(lambda: kafka.Producer(7))
    attempt(lambda: producer.produce(topic, 7))
    attempt(lambda: producer.produce(topic, b"x" * 2_000_000))
    consumer = kafka.Consumer({"bootstrap.servers": servers, "group.id": "none"})
    attempt(lambda: consumer.commit(asynchronous=False))
    attempt(lambda: consumer.seek(kafka.TopicPartition(topic, 0, 1)))
    attempt(lambda: consumer.store_offsets(offsets=[kafka.TopicPartition(topic, 0, 1)]))
    attempt(lambda: consumer.subscribe("a string"))
    consumer.close()
    consumer.close()
    attempt(lambda: consumer.poll(0))
    full = kafka.Producer(
        {"bootstrap.servers": servers, "queue.buffering.max.messages": 2, "linger.ms": 1000}
    )
    attempt(lambda: [full.produce(topic, b"x") for _ in range(3)])
    for one in (full, producer):
        one.flush(DEADLINE_S)
        one.close()
    return errors


def transactions(kafka: ModuleType, servers: str, topic: str) -> Any:
    """A committed and an aborted transaction, with a consumer's offsets."""
    producer = kafka.Producer(
        {"bootstrap.servers": servers, "transactional.id": f"id of {topic} {kafka.__name__}"}
    )
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(topic, b"committed", partition=0)
    reader = kafka.Consumer({"bootstrap.servers": servers, "group.id": f"group of {topic}"})
    producer.send_offsets_to_transaction(
        [kafka.TopicPartition(topic, 0, 7)], reader.consumer_group_metadata(), DEADLINE_S
    )
    producer.commit_transaction(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(topic, b"aborted", partition=0)
    producer.flush(DEADLINE_S)
    producer.abort_transaction(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(topic, b"last", partition=0)
    producer.commit_transaction(DEADLINE_S)
    committed = reader.committed([kafka.TopicPartition(topic, 0)], 10)
    reader.assign([kafka.TopicPartition(topic, 0, kafka.OFFSET_BEGINNING)])
    read: list[Any] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(read) < 2 and time.monotonic() < deadline:
        read += reader.consume(2 - len(read), timeout=0.5)
    reader.close()
    producer.close()
    return _places(committed), [message.value() for message in read]


PROGRAMS = [producing, consuming, storing_offsets, assigning, refusing, transactions]


def _fill(kafka: ModuleType, servers: str, topic: str) -> None:
    producer = kafka.Producer({"bootstrap.servers": servers})
    for number in range(30):
        producer.produce(topic, f"value-{number}", key=f"key-{number}", partition=number % 3)
    assert producer.flush(DEADLINE_S) == 0
    producer.close()


def _places(partitions: Any) -> list[tuple[int, int, bool]]:
    return sorted((one.partition, one.offset, one.error is None) for one in partitions)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_do_the_same_under_both_packages(
    program: Callable[[ModuleType, str, str], Any],
) -> None:
    options = {"group.initial.rebalance.delay.ms": 0, "num.partitions": 3}
    with Broker(config=options) as broker:
        outcomes = {}
        for name, kafka in (("theirs", confluent_kafka), ("ours", confluent)):
            broker.create_topic(name, partitions=3)
            outcomes[name] = program(kafka, broker.bootstrap_servers, name)
    assert outcomes["ours"] == outcomes["theirs"]


def test_admin_calls_do_the_same_under_both_packages() -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        theirs = _administer(confluent_kafka, confluent_kafka.admin, servers, "theirs")
        ours = _administer(confluent, confluent_admin, servers, "ours")
    assert ours == theirs


def _administer(kafka: ModuleType, admin: ModuleType, servers: str, topic: str) -> Any:
    client = admin.AdminClient({"bootstrap.servers": servers})
    seen: list[Any] = []

    def outcome(future: Any) -> Any:
        try:
            return future.result(timeout=DEADLINE_S)
        except kafka.KafkaException as error:
            return error.args[0].code()

    created = client.create_topics([admin.NewTopic(topic, 2, 1, config={"retention.ms": "1000"})])
    seen.append(outcome(created[topic]))
    again = client.create_topics([admin.NewTopic(topic, 2, 1)])
    seen.append(outcome(again[topic]))
    grown = client.create_partitions([admin.NewPartitions(topic, 3)])
    seen.append(outcome(grown[topic]))
    metadata = client.list_topics(topic, timeout=10)
    seen.append(sorted(metadata.topics[topic].partitions))
    resource = admin.ConfigResource("topic", topic)
    entries = outcome(client.describe_configs([resource])[resource])
    seen.append((entries["retention.ms"].value, entries["retention.ms"].is_default))
    change = admin.ConfigEntry(
        "retention.ms", "5000", incremental_operation=admin.AlterConfigOpType.SET
    )
    changed = admin.ConfigResource("topic", topic, incremental_configs=[change])
    seen.append(outcome(client.incremental_alter_configs([changed])[changed]))
    entries = outcome(client.describe_configs([resource])[resource])
    seen.append(entries["retention.ms"].value)
    producer = kafka.Producer({"bootstrap.servers": servers})
    for _ in range(5):
        producer.produce(topic, b"x", partition=0)
    producer.flush(DEADLINE_S)
    producer.close()
    partition = kafka.TopicPartition(topic, 0)
    latest = client.list_offsets({partition: admin.OffsetSpec.latest()})
    seen.append(outcome(latest[partition]).offset)
    deleted = client.delete_records([kafka.TopicPartition(topic, 0, 2)])
    seen.append([outcome(one).low_watermark for one in deleted.values()])
    group = kafka.ConsumerGroupTopicPartitions(
        f"group-{topic}", [kafka.TopicPartition(topic, 0, 3)]
    )
    altered = outcome(client.alter_consumer_group_offsets([group])[group.group_id])
    seen.append(_places(altered.topic_partitions))
    asked = kafka.ConsumerGroupTopicPartitions(group.group_id)
    listed = outcome(client.list_consumer_group_offsets([asked])[group.group_id])
    seen.append(_places(listed.topic_partitions))
    groups = outcome(client.list_consumer_groups()).valid
    seen.append(any(one.group_id == group.group_id for one in groups))
    described = outcome(client.describe_consumer_groups([group.group_id])[group.group_id])
    seen.append((described.state.name, described.members))
    seen.append(outcome(client.delete_consumer_groups([group.group_id])[group.group_id]))
    seen.append(outcome(client.delete_topics([topic])[topic]))
    seen.append(outcome(client.delete_topics([topic])[topic]))
    return seen
