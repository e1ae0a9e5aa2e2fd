"""Fixtures for the producer's parts, and for whole producers on a scripted network."""

from collections.abc import Callable, Iterator

import pytest

from pyclient import KafkaProducer
from pyclient.net.scripted import ScriptedNetwork
from tests.support.fake_engine import FakeEngine
from tests.support.scripted_log import ScriptedLog

NewProducer = Callable[..., KafkaProducer]


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def network() -> ScriptedNetwork:
    return ScriptedNetwork()


@pytest.fixture
def log(network: ScriptedNetwork) -> ScriptedLog:
    """Broker 1 with a log that checks sequences, and topic orders with two partitions."""
    network.add_broker(1)
    network.add_topic("orders", partitions=2)
    return ScriptedLog(network)


@pytest.fixture
def new_producer(network: ScriptedNetwork) -> Iterator[NewProducer]:
    """Makes producers in the scripted network, and closes them."""
    made: list[KafkaProducer] = []

    def new_producer(**options: object) -> KafkaProducer:
        made.append(KafkaProducer(bootstrap_servers="broker1", environment=network, **options))
        return made[-1]

    yield new_producer
    for producer in made:
        producer.close(timeout=0)


@pytest.fixture
def producer(log: ScriptedLog, new_producer: NewProducer) -> KafkaProducer:
    return new_producer()
