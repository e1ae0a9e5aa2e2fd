"""A transactional producer on a scripted network, in either transaction version."""

from collections.abc import Callable

import pytest

from pyclient import KafkaProducer
from pyclient.net.scripted import ScriptedNetwork
from tests.support.scripted_transactions import ScriptedTransactions


@pytest.fixture(params=[1, 2], ids=["TV1", "TV2"])
def coordinator(request: pytest.FixtureRequest, network: ScriptedNetwork) -> ScriptedTransactions:
    """Broker 1, which leads topic orders of two partitions and coordinates everything."""
    broker = network.add_broker(1)
    network.add_topic("orders", partitions=2)
    return ScriptedTransactions(network, broker, request.param)


@pytest.fixture
def idle(
    coordinator: ScriptedTransactions, new_producer: Callable[..., KafkaProducer]
) -> KafkaProducer:
    """Before `init_transactions`."""
    return new_producer(transactional_id="copier", max_block_ms=5_000)


@pytest.fixture
def producer(idle: KafkaProducer) -> KafkaProducer:
    """After `init_transactions`."""
    idle.init_transactions()
    return idle
