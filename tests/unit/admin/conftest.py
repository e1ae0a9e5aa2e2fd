"""A scripted cluster of two brokers, and an admin client on it."""

import pytest

from pyclient.admin import KafkaAdminClient
from pyclient.net.scripted import ScriptedNetwork


@pytest.fixture
def network():
    return ScriptedNetwork()


@pytest.fixture
def controller(network):
    return network.add_broker(1)


@pytest.fixture
def other(network):
    return network.add_broker(2)


@pytest.fixture
def admin(network, controller, other):
    with KafkaAdminClient(bootstrap_servers="broker1:9092", environment=network) as admin:
        yield admin
