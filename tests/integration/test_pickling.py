"""A client that is passed to another process (spawn, forkserver) says what to do instead."""

import copy
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest

from broker_stub import Broker
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer

PICKLERS = pytest.mark.parametrize(
    "pickler",
    [pickle.dumps, ForkingPickler.dumps, copy.copy, copy.deepcopy],
    ids=["pickle", "multiprocessing", "copy", "deepcopy"],
)


@PICKLERS
@pytest.mark.parametrize("client_class", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
def test_a_client_is_to_be_created_in_the_child_process(kafka_broker, client_class, pickler):
    name = client_class.__name__
    with (
        client_class(bootstrap_servers=kafka_broker.bootstrap_servers) as client,
        pytest.raises(TypeError, match=f"Create a {name} in the child process"),
    ):
        pickler(client)


def test_a_bound_method_is_refused_as_its_client_is(kafka_broker):
    with (
        KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers) as producer,
        pytest.raises(TypeError, match="Create a KafkaProducer in the child process"),
    ):
        ForkingPickler.dumps(producer.send)


@PICKLERS
def test_a_broker_is_to_be_reached_by_its_address(pickler):
    with pytest.raises(TypeError, match="Pass its bootstrap_servers to the child process"):
        pickler(Broker())
