"""Errors that a simulated broker injects: only those that Kafka could return at that point."""

import pytest

from broker_stub.dispatch import refusal
from broker_stub.handlers import SERVED
from broker_stub.testing.simulation import Conditions, Simulation, mishaps
from pyclient import KafkaAdminClient
from pyclient.admin import NewTopic
from pyclient.errors import KafkaError, TopicExistsError
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.registry import request_class

MADE_UP = [
    (api_key, error)
    for table in (mishaps._BEFORE, mishaps._AFTER)
    for api_key, errors in table.items()
    for error in errors
]


@pytest.mark.parametrize(("api_key", "error"), MADE_UP)
def test_every_error_passes_and_can_be_said_by_its_api(api_key, error):
    assert api_key in SERVED
    assert error.retriable
    request = request_class(api_key)()
    if isinstance(request, ProduceRequest):
        request.acks = -1
    assert refusal(request, error()) is not None


def test_some_refusals_come_before_and_some_after_the_fact():
    outcomes = set()
    for seed in range(30):
        with Simulation(seed, Conditions(error=1)) as world:

            def create(world=world):
                with KafkaAdminClient(**world.client(), default_api_timeout_ms=1_500) as admin:
                    try:
                        admin.create_topics([NewTopic("orders", 1, 1)])
                    except TopicExistsError:
                        return "was told that it exists"
                    except KafkaError:
                        return "was not told"
                    return "was told"

            program = world.program(create)
            world.run()
            exists = world.broker.node.image.topic("orders") is not None
            outcomes.add((program.result, exists))
    assert ("was not told", False) in outcomes
    assert ("was not told", True) in outcomes
    assert ("was told", False) not in outcomes
