"""What kafka-python's integration tests ask for: their fixtures' names, on this package's broker.

Runs in the process of their tests, in place of their own `conftest` and `fixtures`: those start
Apache Kafka from a folder that their source package does not have, and use kafka-python's network
client. `kafka` is this package there (`pyclient.compat.kafka_python`).
"""

import re
import sys
import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

import pytest

import pyclient
from broker_stub import Broker
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer
from pyclient.admin import NewTopic
from pyclient.structs import MemberState

PARTITIONS = 4
STEP_SECONDS = 0.05


def _provide(name: str, **contents: Any) -> None:
    """A module that their tests import beside what they test; this package has no such module."""
    module = ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module


_provide("kafka.coordinator.base", MemberState=MemberState)
_provide("kafka.protocol")
_provide("kafka.protocol.broker_version_data", BrokerVersionData=None)


def create_topics(broker: Broker, topic_names: list[str]) -> None:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in topic_names])


@pytest.fixture(scope="module")
def kafka_broker() -> Iterator[Broker]:
    config = {
        "node.id": 0,
        "num.partitions": PARTITIONS,
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 500,
    }
    with Broker(config=config) as broker:
        yield broker


@pytest.fixture
def topic(kafka_broker: Broker, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^\w.-]", "", request.node.name) + f"_{uuid.uuid4().hex[:8]}"
    create_topics(kafka_broker, [name])
    return name


@pytest.fixture
def kafka_consumer_factory(kafka_broker: Broker, topic: str) -> Any:
    @contextmanager
    def made(topics: tuple[str, ...] = (topic,), **options: Any) -> Iterator[KafkaConsumer]:
        defaults = {"heartbeat_interval_ms": 500, "auto_offset_reset": "earliest"}
        servers = kafka_broker.bootstrap_servers
        with KafkaConsumer(*topics, bootstrap_servers=servers, **{**defaults, **options}) as one:
            yield one

    return made


@pytest.fixture
def kafka_producer_factory(kafka_broker: Broker) -> Any:
    return lambda **options: KafkaProducer(
        bootstrap_servers=kafka_broker.bootstrap_servers, **options
    )


@pytest.fixture
def kafka_admin_client_factory(kafka_broker: Broker) -> Any:
    return lambda **options: KafkaAdminClient(
        bootstrap_servers=kafka_broker.bootstrap_servers, **options
    )


@pytest.fixture
def consumer(kafka_consumer_factory: Any) -> Iterator[KafkaConsumer]:
    with kafka_consumer_factory() as one:
        yield one


@pytest.fixture
def producer(kafka_producer_factory: Any) -> Iterator[KafkaProducer]:
    with kafka_producer_factory() as one:
        yield one


@pytest.fixture
def kafka_admin_client(kafka_admin_client_factory: Any) -> Iterator[KafkaAdminClient]:
    with kafka_admin_client_factory() as one:
        yield one


@pytest.fixture
def send_messages(topic: str, producer: KafkaProducer) -> Any:
    default_topic, default_producer = topic, producer

    def send(
        numbers: range,
        partition: int = 0,
        topic: str = default_topic,
        producer: KafkaProducer = default_producer,
    ) -> list[bytes]:
        values = [f"{number}-{uuid.uuid4()}".encode() for number in numbers]
        futures = [producer.send(topic, value, partition=partition) for value in values]
        producer.flush()
        assert all(future.succeeded() for future in futures)
        return values

    return send


class _Group:
    """Consumers that poll, each in a thread of its own."""

    def __init__(self, factory: Any, stack: ExitStack) -> None:
        self._factory = factory
        self._stack = stack
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._consumers: list[KafkaConsumer] = []

    def spawn(self, group_id: str, count: int = 1, **options: Any) -> list[KafkaConsumer]:
        made = [
            self._stack.enter_context(self._factory(group_id=group_id, **options))
            for _ in range(count)
        ]
        for one in made:
            thread = threading.Thread(target=self._poll, args=(one,), daemon=True)
            thread.start()
            self._threads.append(thread)
        self._consumers += made
        return made

    def _poll(self, consumer: KafkaConsumer) -> None:
        while not self._stopped.is_set():
            consumer.poll(timeout_ms=100)

    def wait_for_stable(self, timeout: float = 30) -> None:
        """Until every member has partitions, and all of a group the same generation."""
        looks = int(timeout / STEP_SECONDS)
        for _ in range(looks):
            generations = defaultdict(set)
            members = [one.group_metadata() for one in self._consumers]
            for member in members:
                generations[member.group_id].add(member.generation_id)
            if (
                all(member.state is MemberState.STABLE for member in members)
                and all(one.assignment() for one in self._consumers)
                and all(len(numbers) == 1 for numbers in generations.values())
            ):
                return
            self._stopped.wait(STEP_SECONDS)
        pytest.fail(f"no stable group: {members}")

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def consumer_group(kafka_consumer_factory: Any) -> Iterator[_Group]:
    with ExitStack() as stack:
        group = _Group(kafka_consumer_factory, stack)
        try:
            yield group
        finally:
            group.stop()


def pytest_report_header() -> str:
    return f"kafka is {sys.modules['kafka'].__name__} {pyclient.__version__}"
