"""A Kafka broker light enough to live inside a test and real enough to keep data.

with Broker() as broker:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

`Broker` is imported when its name is first used: pytest loads the fixtures of this package into
every run, and most of those need no broker.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker_stub.broker import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> Any:
    if name != "Broker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from broker_stub.broker import Broker

    return Broker
