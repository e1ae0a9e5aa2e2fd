"""Whole consumers on a scripted network, in a group of one."""

import pytest

from pyclient import KafkaConsumer
from pyclient.net.scripted import ScriptedNetwork
from tests.support.scripted_group import ScriptedGroup


@pytest.fixture
def network():
    network = ScriptedNetwork()
    network.add_broker(1)
    network.add_topic("orders")
    return network


@pytest.fixture
def broker(network):
    return network.brokers[1]


@pytest.fixture
def group(network, broker):
    return ScriptedGroup(network, broker, [b"a", b"b", b"c"])


@pytest.fixture
def new_consumer(network, group):
    made = []

    def new_consumer(*topics, **options):
        settings = {
            "bootstrap_servers": "broker1",
            "environment": network,
            "auto_offset_reset": "earliest",
            "group_id": "g",
            **options,
        }
        made.append(KafkaConsumer(*topics, **settings))
        return made[-1]

    yield new_consumer
    for consumer in made:
        consumer.close(autocommit=False, timeout_ms=0)
