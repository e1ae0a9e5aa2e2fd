"""Kafka for Python: producer, consumer and admin client.

The public names live here; `NATIVE` tells whether the compiled twins are in use, `NATIVE_REASON`
why they are not. A client is imported when its name is first used, so that a program pays only
for what it needs.

- `producer/`, `consumer/`, `admin/`: the clients
- `net/`: the engine below them: I/O thread, connections, waiting
- `protocol/`: Kafka's messages; `records/`: record batches; `_native/`, `_pure/`: their hot code
- `config/`: the options
- `structs`, `serializer/`, `partitioner/`, `coordinator/`, `record/`, `future`, `codec`:
  kafka-python's module paths, which re-export
- `compat/`: for programs that were written for other clients
- `cluster`: the cluster as partitioners see it
- `cli/`: the command line; `perf/`: load tests
- `errors`, `error_codes`, `types`, `interceptors`, `serialization`, `metrics`: what programs use
- `metadata`: a snapshot of the cluster
- `clock`, `entropy`, `timers`: time and randomness, injected everywhere
- `varint`: variable-length integers
"""

from typing import TYPE_CHECKING, Any

from pyclient._twin import NATIVE, NATIVE_REASON
from pyclient.types import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PreparedTransaction,
    ProducerRecord,
    RecordMetadata,
    TopicPartition,
    TopicPartitionReplica,
)
from pyclient.version import __version__

if TYPE_CHECKING:
    from pyclient.admin import IsolationLevel, OffsetSpec
    from pyclient.admin.admin import KafkaAdminClient
    from pyclient.consumer.consumer import KafkaConsumer
    from pyclient.consumer.health.report import ConsumerHealth
    from pyclient.consumer.rebalance_listener import ConsumerRebalanceListener
    from pyclient.interceptors import ConsumerInterceptor, ProducerInterceptor
    from pyclient.producer.producer import KafkaProducer
    from pyclient.producer.sent_records import SentRecords
    from pyclient.records.record import ConsumerRecord
    from pyclient.serialization import (
        DefaultSerializer,
        Deserializer,
        JsonSerializer,
        Serializer,
    )

__all__ = [
    "NATIVE",
    "NATIVE_REASON",
    "ConsumerGroupMetadata",
    "ConsumerHealth",
    "ConsumerInterceptor",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "DefaultSerializer",
    "Deserializer",
    "IsolationLevel",
    "JsonSerializer",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "PreparedTransaction",
    "ProducerInterceptor",
    "ProducerRecord",
    "RecordMetadata",
    "SentRecords",
    "Serializer",
    "TopicPartition",
    "TopicPartitionReplica",
    "__version__",
]

_HOMES = {
    "ConsumerHealth": "pyclient.consumer.health.report",
    "ConsumerInterceptor": "pyclient.interceptors",
    "ConsumerRebalanceListener": "pyclient.consumer.rebalance_listener",
    "ConsumerRecord": "pyclient.records.record",
    "DefaultSerializer": "pyclient.serialization",
    "Deserializer": "pyclient.serialization",
    "IsolationLevel": "pyclient.admin",
    "JsonSerializer": "pyclient.serialization",
    "KafkaAdminClient": "pyclient.admin.admin",
    "KafkaConsumer": "pyclient.consumer.consumer",
    "KafkaProducer": "pyclient.producer.producer",
    "OffsetSpec": "pyclient.admin",
    "ProducerInterceptor": "pyclient.interceptors",
    "SentRecords": "pyclient.producer.sent_records",
    "Serializer": "pyclient.serialization",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        module = import_module(home)
    except AttributeError as error:
        # `from pyclient import ...` would turn it into "cannot import name", without the cause.
        raise ImportError(f"cannot import {home}: {error}") from error
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES} - {"Any", "TYPE_CHECKING", "_HOMES"})
