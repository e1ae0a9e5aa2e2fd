"""The clients that a load can be run with: ours, and its peers.

`producer_of` and `consumer_of` import a peer when it is asked for, and say what to install.

- `aio`: aiokafka
- `confluent`: confluent-kafka
- `interface`: what a load needs of a client
- `java`: Apache Kafka's own perf tools
- `kafka_python_api`: pyclient and kafka-python, which have the same interface
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from pyclient.errors import KafkaConfigurationError
from pyclient.perf.clients.interface import LoadConsumer, LoadProducer, OnDone

JAVA: Final = "java"
_MODULES: Final = {
    "pyclient": ("pyclient.perf.clients.kafka_python_api", "kafka-pyclient"),
    "kafka-python": ("pyclient.perf.clients.kafka_python_api", "kafka-python"),
    "confluent-kafka": ("pyclient.perf.clients.confluent", "confluent-kafka"),
    "aiokafka": ("pyclient.perf.clients.aio", "aiokafka"),
}
NAMES: Final = (*_MODULES, JAVA)

_OURS_ALONE: Final = ("bootstrap.timeout.ms",)


def producer_of(client: str, options: Mapping[str, Any], on_done: OnDone) -> LoadProducer:
    """A producer of the client with this name.

    Raises:
        KafkaConfigurationError: it is not installed, or does not know an option.
    """
    made: LoadProducer = _made(client, "producer", options, on_done)
    return made


def consumer_of(client: str, options: Mapping[str, Any]) -> LoadConsumer:
    """A consumer of the client with this name; raises what `producer_of` does."""
    made: LoadConsumer = _made(client, "consumer", options)
    return made


def _made(client: str, kind: str, options: Mapping[str, Any], *rest: Any) -> Any:
    module, package = _MODULES[client]
    if client != "pyclient":
        options = {name: options[name] for name in options if name not in _OURS_ALONE}
    try:
        make = getattr(import_module(module), kind)
        return make(client, options, *rest)
    except ImportError as error:
        raise KafkaConfigurationError(
            f"--client {client} needs the package: pip install {package}"
        ) from error
