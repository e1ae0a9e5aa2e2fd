"""Kafka for Python: producer, consumer and admin client.

The public names live here; `NATIVE` tells whether the compiled twins are in use. Each name loads
its module when it is first used, so that a program pays only for the clients it has.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyclient._twin import NATIVE
from pyclient.version import __version__

if TYPE_CHECKING:
    from pyclient.producer.producer import KafkaProducer
    from pyclient.types import OffsetAndMetadata, TopicPartition

__all__ = ["NATIVE", "KafkaProducer", "OffsetAndMetadata", "TopicPartition", "__version__"]

_MODULES = {
    "KafkaProducer": "pyclient.producer.producer",
    "OffsetAndMetadata": "pyclient.types",
    "TopicPartition": "pyclient.types",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
