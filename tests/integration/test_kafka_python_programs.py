"""A program written for kafka-python, run with nothing but its import changed.

The program is a string that runs twice: with `kafka` and with `pyclient`, on the same broker;
what it returns must be the same.
"""

from typing import Any

import pytest

from broker_stub import Broker
from tests.support.kafka_python_programs import PROGRAMS, outcomes

PROGRAM = """
import json

from {package} import KafkaConsumer, KafkaProducer
from {package}.errors import KafkaError


def run(servers, topic):
    seen = []
    producer = KafkaProducer(
        bootstrap_servers=[servers],
        key_serializer=str.encode,
        value_serializer=lambda value: json.dumps(value).encode("utf-8"),
        acks="all",
        retries=3,
        linger_ms=10,
        compression_type="gzip",
    )
    acknowledged = []
    for number in range(30):
        future = producer.send(
            topic, key="key-%d" % (number % 5), value={{"number": number}},
            headers=[("source", b"program")], timestamp_ms=1700000000000 + number,
        )
        future.add_callback(lambda metadata: acknowledged.append(metadata.offset))
        future.add_errback(lambda error: seen.append(error))
    producer.flush(timeout=20)
    try:
        metadata = future.get(timeout=20)
    except KafkaError as error:
        return error
    seen.append((metadata.topic, metadata.topic_partition, sorted(acknowledged)))
    seen.append(sorted(producer.partitions_for(topic)))
    producer.close(timeout=10)

    settings = dict(
        bootstrap_servers=servers,
        group_id="group of " + topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        key_deserializer=lambda key: key.decode(),
        value_deserializer=lambda value: json.loads(value),
        consumer_timeout_ms=10000,
        max_poll_records=7,
    )
    consumer = KafkaConsumer(topic, **settings)
    read = []
    for message in consumer:
        read.append((message.partition, message.offset, message.key, message.value["number"],
                     message.timestamp, list(message.headers)))
        if len(read) == 20:
            consumer.commit()
            break
    positions = {{one: consumer.position(one) for one in consumer.assignment()}}
    seen.append(all(consumer.committed(one) == positions[one] for one in positions))
    consumer.close()

    consumer = KafkaConsumer(topic, **settings)
    rest = []
    for message in consumer:
        rest.append((message.partition, message.offset, message.key, message.value["number"],
                     message.timestamp, list(message.headers)))
        if len(read) + len(rest) == 30:
            break
    seen.append(sorted(read + rest))
    partition = sorted(consumer.assignment())[0]
    consumer.seek(partition, 0)
    again = next(iter(consumer))
    seen.append((again.offset, again.partition == partition.partition))
    seen.append(consumer.end_offsets([partition]) == {{partition: consumer.highwater(partition)}})
    seen.append(consumer.beginning_offsets([partition])[partition])
    seen.append(sorted(consumer.subscription()))
    consumer.close()
    return seen
"""


def run(package: str, servers: str, topic: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(PROGRAM.format(package=package), namespace)
    return namespace["run"](servers, topic)


def without_names(value: Any, topic: str) -> Any:
    """The same in comparable form: tuples as tuples, the topic's name the same."""
    if isinstance(value, str):
        return value.replace(topic, "TOPIC")
    if isinstance(value, list | tuple):
        return tuple(without_names(one, topic) for one in value)
    return value


@pytest.mark.filterwarnings("ignore:.*does not implement kafka.serializer")
def test_a_program_for_kafka_python_gives_the_same_with_its_import_changed(
    kafka_broker: Broker,
) -> None:
    for topic in ("theirs", "ours"):
        kafka_broker.create_topic(topic, partitions=3)
    theirs = run("kafka", kafka_broker.bootstrap_servers, "theirs")
    ours = run("pyclient", kafka_broker.bootstrap_servers, "ours")
    assert without_names(ours, "ours") == without_names(theirs, "theirs")


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_unmodified_program_has_the_same_outcome(kafka_broker: Broker, program: str) -> None:
    theirs, ours = outcomes(program, kafka_broker.bootstrap_servers)
    assert theirs
    assert ours == theirs
