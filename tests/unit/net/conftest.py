"""A scripted network, and engines that live in it or on real sockets."""

from collections.abc import Callable, Iterator

import pytest

from pyclient.config.common import COMMON_KEYS
from pyclient.config.definition import ConfigDefinition
from pyclient.net.engine import Engine
from pyclient.net.environment import Environment
from pyclient.net.scripted import ScriptedNetwork

COMMON = ConfigDefinition("a client", COMMON_KEYS)
NewEngine = Callable[..., Engine]


@pytest.fixture
def network() -> ScriptedNetwork:
    return ScriptedNetwork()


def _engines(environment: Environment | None) -> Iterator[NewEngine]:
    made: list[Engine] = []

    def new_engine(**options: object) -> Engine:
        config = COMMON.parse({"bootstrap_servers": "broker1:9092", **options})
        made.append(Engine(config, client_id="test", environment=environment))
        return made[-1]

    yield new_engine
    for engine in made:
        engine.close(timeout_ms=5_000)


@pytest.fixture
def new_engine(network: ScriptedNetwork) -> Iterator[NewEngine]:
    """Makes engines in the scripted network."""
    yield from _engines(network)


@pytest.fixture
def new_real_engine() -> Iterator[NewEngine]:
    """Makes engines with a thread and sockets."""
    yield from _engines(None)


@pytest.fixture
def engine(network: ScriptedNetwork, new_engine: NewEngine) -> Engine:
    """An engine that knows the cluster: broker 1 and 2, topic orders with two partitions."""
    network.add_broker(1)
    network.add_broker(2)
    network.add_topic("orders", partitions=2)
    engine = new_engine()
    engine.start()
    engine.bootstrap(timeout_ms=1_000)
    return engine
