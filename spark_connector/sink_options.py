"""The options of `df.write` and `df.writeStream`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyclient import KafkaConsumer, KafkaProducer
from spark_connector.options import CLIENT_PREFIX, Options

EXACTLY_ONCE_KEYS: Final = ("exactlyOnce", "decisionTopic", "transactionalIdPrefix", "batchId")
SINK_KEYS: Final = ("topic", "includeTimestamp", *EXACTLY_ONCE_KEYS)
_SERIALIZERS: Final = {"key.serializer": "keys", "value.serializer": "values"}


@dataclass(frozen=True)
class SinkOptions:
    """The options of a write."""

    client: dict[str, Any] = field(default_factory=dict)
    topic: str | None = None
    include_timestamp: bool = False


def parse_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Check a sink's options.

    Raises:
        ValueError: an option is missing or malformed.
    """
    from spark_connector.source_options import SOURCE_KEYS

    options = Options(given)
    options.warn_of_others(SINK_KEYS, SOURCE_KEYS)
    for key, what in _SERIALIZERS.items():
        if CLIENT_PREFIX + key in options:
            raise ValueError(f"Kafka option '{key}' is not supported: {what} are written as bytes")
    client = options.client(
        "producer", KafkaProducer.DEFAULT_CONFIG, KafkaConsumer.DEFAULT_CONFIG, ()
    )
    return SinkOptions(
        client=client,
        topic=options.text("topic"),
        include_timestamp=options.boolean("includeTimestamp", default=False),
    )
