"""confluent-kafka's clients, on this package.

    from pyclient.compat.confluent import Consumer, Producer

The classes take librdkafka's configuration, and behave as confluent-kafka's do: `produce` with
delivery reports from `poll`, `consume`, `store_offsets`, a key's partition by CRC-32. A program
that imports `confluent_kafka` runs unchanged after `alias.install()`, or by

    python -m pyclient.compat.confluent app.py

Rooms: `configuration` (librdkafka's names), `error`, `message`, `topic_partition`; `producer` with
`delivery_reports`, `unresolved_topics`, `partitioners`; `consumer` with `rebalance`,
`stored_offsets`; `admin`, `admin_types`, `cluster_metadata`; `events` and `notices` (callbacks);
`alias` (`import confluent_kafka`).
"""

from pyclient.compat.confluent.admin_types import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    IsolationLevel,
    Node,
    TopicCollection,
    TopicPartitionInfo,
)
from pyclient.compat.confluent.consumer import Consumer
from pyclient.compat.confluent.error import KafkaError, KafkaException
from pyclient.compat.confluent.message import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Message,
)
from pyclient.compat.confluent.partitioners import consistent, fnv1a, murmur2
from pyclient.compat.confluent.producer import Producer
from pyclient.compat.confluent.topic_partition import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    TopicPartition,
)

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "OFFSET_STORED",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "Consumer",
    "ConsumerGroupState",
    "ConsumerGroupTopicPartitions",
    "ConsumerGroupType",
    "IsolationLevel",
    "KafkaError",
    "KafkaException",
    "Message",
    "Node",
    "Producer",
    "TopicCollection",
    "TopicPartition",
    "TopicPartitionInfo",
    "__version__",
    "consistent",
    "fnv1a",
    "libversion",
    "murmur2",
    "version",
]

__version__ = "2.16.1"


def version() -> tuple[str, int]:
    """The version of confluent-kafka whose interface this is."""
    return "2.12.0", 0x020C0000


def libversion() -> tuple[str, int]:
    """The version of librdkafka whose configuration this takes."""
    return "2.12.0", 0x020C00FF
