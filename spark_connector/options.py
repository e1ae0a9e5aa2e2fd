"""The options of the source and the sink: Spark's own Kafka options, checked on the driver.

Keys are case-insensitive; Spark passes them in lower case. A wrong option raises an error that
names it, before a task starts.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyclient import TopicPartition
from spark_connector.offsets import LATEST, PartitionOffsets, parse_offsets, parse_partitions

_SOURCE_KEYS: Final = (
    "assign", "subscribe", "subscribePattern", "startingOffsets", "endingOffsets",
    "failOnDataLoss", "maxOffsetsPerTrigger", "includeHeaders", "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
)  # fmt: skip
_SINK_KEYS: Final = ("topic",)
# Options of Spark's connector that are not supported yet. Refused, never silently ignored.
_NOT_YET: Final = (
    "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy",
    "endingTimestamp", "endingOffsetsByTimestamp", "minPartitions", "maxRecordsPerPartition",
    "minOffsetsPerTrigger", "maxTriggerDelay", "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs", "partition.metadata.cache.ttl.ms",
)  # fmt: skip
# Spark itself passes these along on some paths.
_SPARKS_OWN: Final = ("path", "checkpointlocation", "queryname", "outputmode")
_REFUSED_CLIENT_KEYS: Final = (
    "auto.offset.reset", "key.deserializer", "value.deserializer", "key.serializer",
    "value.serializer", "enable.auto.commit", "interceptor.classes", "max.poll.records",
)  # fmt: skip
_CLIENT_PREFIX: Final = "kafka."
_BOOTSTRAP: Final = "kafka.bootstrap.servers"


@dataclass(frozen=True)
class Subscription:
    """Which partitions to read: exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class SourceOptions:
    """The options of a read. Sent to the tasks by pickle."""

    subscription: Subscription
    client: dict[str, Any]
    starting_offsets: PartitionOffsets | str
    ending_offsets: PartitionOffsets | str = "latest"
    fail_on_data_loss: bool = True
    include_headers: bool = False
    max_offsets_per_trigger: int | None = None
    poll_timeout_ms: int = 120_000


@dataclass(frozen=True)
class SinkOptions:
    """The options of a write."""

    client: dict[str, Any] = field(default_factory=dict)
    topic: str | None = None


def includes_headers(options: Mapping[str, str]) -> bool:
    """Whether the schema has a headers column; read before the other options are checked."""
    return _boolean(_lowered(options), "includeHeaders", default=False)


def parse_source_options(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """Check a source's options.

    Raises:
        ValueError: an option is missing, unknown, contradictory or malformed.
    """
    given = _lowered(options)
    _refuse_unknown(given, _SOURCE_KEYS)
    subscription = _subscription(given)
    starting = given.get("startingoffsets", "latest" if streaming else "earliest")
    if not streaming and starting.strip().lower() == "latest":
        raise ValueError("starting offset can't be latest for batch queries on Kafka")
    if streaming and "endingoffsets" in given:
        raise ValueError("ending offset not valid in streaming queries")
    ending = given.get("endingoffsets", "latest")
    if ending.strip().lower() == "earliest":
        raise ValueError("ending offset can't be earliest for batch queries on Kafka")
    if not streaming and "maxoffsetspertrigger" in given:
        raise ValueError("maxOffsetsPerTrigger is for streaming queries, this one is a batch")
    starting_offsets = _offsets(starting, "startingOffsets")
    if not streaming and not isinstance(starting_offsets, str):
        _refuse_latest(starting_offsets)
    return SourceOptions(
        subscription=subscription,
        client=_client_options(given, "consumer"),
        starting_offsets=starting_offsets,
        ending_offsets=_offsets(ending, "endingOffsets"),
        fail_on_data_loss=_boolean(given, "failOnDataLoss", default=True),
        include_headers=_boolean(given, "includeHeaders", default=False),
        max_offsets_per_trigger=_positive(given, "maxOffsetsPerTrigger"),
        poll_timeout_ms=_positive(given, "kafkaConsumer.pollTimeoutMs") or 120_000,
    )


def parse_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Check a sink's options.

    Raises:
        ValueError: an option is missing, unknown or malformed.
    """
    given = _lowered(options)
    _refuse_unknown(given, _SINK_KEYS)
    return SinkOptions(client=_client_options(given, "producer"), topic=given.get("topic"))


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in options.items()}


def _refuse_unknown(given: Mapping[str, str], known: tuple[str, ...]) -> None:
    not_yet = {name.lower(): name for name in _NOT_YET}
    names = {name.lower(): name for name in known}
    for key in given:
        if key in names or key in _SPARKS_OWN or key.startswith(_CLIENT_PREFIX):
            continue
        if key in not_yet:
            raise ValueError(f"Option '{not_yet[key]}' is not supported by pykafka yet")
        near = difflib.get_close_matches(key, names, n=1)
        hint = f"; did you mean '{names[near[0]]}'?" if near else ""
        raise ValueError(f"Unknown option '{key}' for format pykafka{hint}")


def _subscription(given: Mapping[str, str]) -> Subscription:
    ways = [way for way in ("assign", "subscribe", "subscribepattern") if way in given]
    if not ways:
        raise ValueError(
            "One of the following options must be specified for Kafka source: "
            "subscribe, subscribePattern, assign"
        )
    if len(ways) > 1:
        raise ValueError(
            "Only one of the following options can be specified for Kafka source: "
            "subscribe, subscribePattern, assign"
        )
    text = given[ways[0]]
    if not text.strip():
        raise ValueError(f"Option '{ways[0]}' is empty: name a topic")
    if ways[0] == "assign":
        return Subscription(partitions=tuple(sorted(set(parse_partitions(text, "assign")))))
    if ways[0] == "subscribepattern":
        return Subscription(pattern=text)
    topics = sorted({topic.strip() for topic in text.split(",") if topic.strip()})
    return Subscription(topics=tuple(topics))


def _offsets(text: str, option: str) -> PartitionOffsets | str:
    word = text.strip().lower()
    return word if word in ("earliest", "latest") else parse_offsets(text, option)


def _refuse_latest(offsets: PartitionOffsets) -> None:
    for partition, offset in offsets.items():
        if offset == LATEST:
            raise ValueError(
                f"startingOffsets for {partition.topic}-{partition.partition} can't be latest "
                "for batch queries on Kafka"
            )


def _client_options(given: Mapping[str, str], kind: str) -> dict[str, Any]:
    if not given.get(_BOOTSTRAP, "").strip():
        raise ValueError(f"Option '{_BOOTSTRAP}' must be specified for configuring Kafka {kind}")
    client = {}
    for key, value in given.items():
        if key.startswith(_CLIENT_PREFIX):
            name = key.removeprefix(_CLIENT_PREFIX)
            if name in _REFUSED_CLIENT_KEYS:
                raise ValueError(f"Kafka option '{name}' is not supported: Spark decides it")
            client[name] = value
    return client


def _boolean(given: Mapping[str, str], option: str, *, default: bool) -> bool:
    text = given.get(option.lower())
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise ValueError(f"Option '{option}' is true or false, not {text}")
    return text.lower() == "true"


def _positive(given: Mapping[str, str], option: str) -> int | None:
    text = given.get(option.lower())
    if text is None:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"Option '{option}' is a positive number, not {text}")
    return int(text)
