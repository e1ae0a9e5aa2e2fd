"""Producers and consumers on one broker, closed at the end."""

import pytest

from pyclient import KafkaConsumer, KafkaProducer


@pytest.fixture
def servers(kafka_broker):
    return kafka_broker.bootstrap_servers


@pytest.fixture
def fill(kafka_broker):
    """Make a topic and write numbered records, `count` to each partition."""

    def fill(topic, partitions=1, count=10, first=0):
        if first == 0:
            kafka_broker.create_topic(topic, partitions=partitions)
        with KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer:
            for number in range(first, first + count):
                for partition in range(partitions):
                    producer.send(topic, b"%d" % number, partition=partition)
            producer.flush(timeout=30)

    return fill


@pytest.fixture
def new_consumer(servers):
    """Makes consumers that start at the beginning and learn of rebalances quickly."""
    made = []
    defaults = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 50}

    def new_consumer(*topics, **options):
        settings = {"bootstrap_servers": servers, **defaults, **options}
        made.append(KafkaConsumer(*topics, **settings))
        return made[-1]

    yield new_consumer
    for consumer in made:
        consumer.close(autocommit=False, timeout_ms=2_000)


@pytest.fixture
def read():
    """Poll until there are `count` records: [(partition, number)]."""

    def read(consumer, count, **options):
        found = []
        while len(found) < count:
            polled = consumer.poll(timeout_ms=20_000, **options)
            assert polled, f"only {len(found)} of {count} records came"
            for records in polled.values():
                found += [(record.partition, int(record.value)) for record in records]
        return found

    return read
