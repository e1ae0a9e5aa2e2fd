"""Producers on our broker, and what is in its logs."""

from collections.abc import Callable, Iterator

import pytest

from broker_stub import Broker
from pyclient import KafkaProducer
from pyclient.clock import SystemClock
from pyclient.timers import Deadline

NewProducer = Callable[..., KafkaProducer]


@pytest.fixture
def new_producer(kafka_broker: Broker) -> Iterator[NewProducer]:
    """Makes producers for the test's broker, and closes them."""
    made: list[KafkaProducer] = []

    def new_producer(**options: object) -> KafkaProducer:
        made.append(KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers, **options))
        return made[-1]

    yield new_producer
    for producer in made:
        producer.close(timeout=10)


@pytest.fixture
def written(kafka_broker: Broker) -> Callable[[str, int], list]:
    """Reads a partition's records from the broker's own log, in the order they are there.

    With `at_least`, waits up to ten seconds for that many.
    """

    def read(topic: str, partition: int = 0, at_least: int = 0) -> list:
        def read_all(node):
            return list(node.replicas.read_all(node.replicas.partition(topic, partition)))

        # Nobody tells when the broker has taken what came without an acknowledgement.
        deadline = Deadline(SystemClock(), 10_000)
        while len(records := kafka_broker.call(read_all)) < at_least and not deadline.expired:
            pass
        return records

    return read
