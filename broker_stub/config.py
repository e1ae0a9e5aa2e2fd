"""The broker's options, by Kafka's names: one row each, and only such that have an effect.

A topic's defaults are broker options too (`segment.bytes` is `log.segment.bytes` here); what is
set for a topic goes over them. Immutable once parsed, any thread may read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker_stub.log.log_config import SERVER_SYNONYMS, TOPIC_KEYS, LogConfig
from pyclient.config.definition import Config, ConfigDefinition, ConfigKey, at_least, one_of
from pyclient.error_codes import InvalidConfigurationError

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000

# A topic's options that are not about its log.
MIN_INSYNC_REPLICAS: Final = ConfigKey(
    "min.insync.replicas",
    int,
    1,
    at_least(1),
    "How many in-sync replicas a produce request with acks=all needs.",
)
COMPRESSION_TYPE: Final = ConfigKey(
    "compression.type",
    str,
    "producer",
    one_of("producer"),
    "The codec that batches are kept in: always the producer's own here.",
)
TOPIC_ROWS: Final = (*TOPIC_KEYS, MIN_INSYNC_REPLICAS, COMPRESSION_TYPE)
TOPIC_DEFINITION: Final = ConfigDefinition("topic", TOPIC_ROWS)
TOPIC_SYNONYMS: Final[Mapping[str, str]] = {
    **SERVER_SYNONYMS,
    MIN_INSYNC_REPLICAS.name: MIN_INSYNC_REPLICAS.name,
    COMPRESSION_TYPE.name: COMPRESSION_TYPE.name,
}

# Times that Kafka also takes in larger units; the finest one that is given counts.
_COARSER: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "log.retention.ms": (
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "log.roll.ms": (("log.roll.hours", _HOUR_MS),),
}

_LOG_DEFAULT_ROWS: Final = tuple(
    ConfigKey(
        TOPIC_SYNONYMS[row.name],
        row.type,
        None if TOPIC_SYNONYMS[row.name] in _COARSER else row.default,
        row.rule,
        row.doc,
    )
    for row in TOPIC_ROWS
)

BROKER_ROWS: Final = (
    ConfigKey(
        "node.id", int, 1, at_least(0), "The number of this broker in its cluster.", ("broker.id",)
    ),
    ConfigKey("broker.rack", str, None, None, "The rack that this broker stands in."),
    ConfigKey(
        "auto.create.topics.enable",
        bool,
        True,
        None,
        "Whether a topic that a client asks for is created if there is none.",
    ),
    ConfigKey(
        "default.replication.factor",
        int,
        1,
        at_least(1),
        "How many replicas a topic gets that does not say.",
    ),
    ConfigKey("delete.topic.enable", bool, True, None, "Whether clients may delete topics."),
    ConfigKey(
        "fetch.max.bytes",
        int,
        55 << 20,
        at_least(1024),
        "The most that one fetch request gets, whatever it asks for.",
    ),
    ConfigKey(
        "group.initial.rebalance.delay.ms",
        int,
        0,
        at_least(0),
        "How long a new group waits for more members: not at all here, 3000 in Apache Kafka.",
    ),
    ConfigKey(
        "group.max.session.timeout.ms",
        int,
        1_800_000,
        at_least(0),
        "The longest session timeout that a member may ask for.",
    ),
    ConfigKey(
        "group.min.session.timeout.ms",
        int,
        6000,
        at_least(0),
        "The shortest session timeout that a member may ask for.",
    ),
    ConfigKey(
        "log.retention.check.interval.ms",
        int,
        300_000,
        at_least(1),
        "How often old segments are looked for.",
    ),
    ConfigKey(
        "log.retention.hours",
        int,
        168,
        at_least(-1),
        "How old records may grow; log.retention.minutes and .ms go before it.",
    ),
    ConfigKey(
        "log.retention.minutes",
        int,
        None,
        at_least(-1),
        "How old records may grow; log.retention.ms goes before it.",
    ),
    ConfigKey(
        "log.roll.hours",
        int,
        168,
        at_least(1),
        "How much later than its first batch a segment's records may be; log.roll.ms goes first.",
    ),
    ConfigKey(
        "max.incremental.fetch.session.cache.slots",
        int,
        1000,
        at_least(0),
        "How many fetch sessions are kept; clients beyond that send full requests.",
    ),
    ConfigKey(
        "num.partitions", int, 1, at_least(1), "How many partitions a topic gets that does not say."
    ),
    ConfigKey(
        "offset.metadata.max.bytes",
        int,
        4096,
        at_least(0),
        "How much text a consumer may leave with a committed offset.",
    ),
    ConfigKey(
        "offsets.topic.num.partitions",
        int,
        50,
        at_least(1),
        "How many partitions __consumer_offsets gets when it is created.",
    ),
    ConfigKey(
        "offsets.topic.replication.factor",
        int,
        1,
        at_least(1),
        "How many replicas __consumer_offsets gets when it is created.",
    ),
    ConfigKey(
        "offsets.topic.segment.bytes",
        int,
        100 << 20,
        at_least(1024),
        "The segment size of __consumer_offsets when it is created.",
    ),
    ConfigKey(
        "socket.request.max.bytes",
        int,
        100 << 20,
        at_least(1),
        "The largest request that is read; a connection that announces more is closed.",
    ),
    *_LOG_DEFAULT_ROWS,
)
BROKER_DEFINITION: Final = ConfigDefinition("broker", BROKER_ROWS)


class BrokerConfig:
    """The broker's options, and what topics make of them."""

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        """Parse options by Kafka's names.

        Raises:
            KafkaConfigurationError: an option is unknown or has a value that is not allowed.
        """
        self._config: Config = BROKER_DEFINITION.parse(options or {})
        self._topic_defaults = {
            topic_name: self._server_value(server_name)
            for topic_name, server_name in TOPIC_SYNONYMS.items()
        }

    def __getitem__(self, name: str) -> Any:
        return self._config[name]

    def is_explicit(self, name: str) -> bool:
        """Whether a value was given, be it the default."""
        return self._config.is_explicit(name)

    def topic_default(self, name: str) -> Any:
        """The value of a topic that does not set the option."""
        return self._topic_defaults[name]

    def topic_default_is_explicit(self, name: str) -> bool:
        """Whether the broker's configuration set that value, in whatever unit."""
        server_name = TOPIC_SYNONYMS[name]
        units = [coarser for coarser, _ in _COARSER.get(server_name, ())]
        return any(map(self.is_explicit, (server_name, *units)))

    def topic_values(self, overrides: Mapping[str, str]) -> dict[str, Any]:
        """All options of a topic, in their types."""
        rows = TOPIC_DEFINITION.keys
        given = {name: rows[name].convert(text) for name, text in overrides.items() if name in rows}
        return {**self._topic_defaults, **given}

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """What a topic's log needs to know."""
        return LogConfig.from_values(self.topic_values(overrides))

    def check_topic(self, configs: Mapping[str, str | None]) -> dict[str, str]:
        """What somebody wants to set for a topic, if it is allowed.

        Raises:
            InvalidConfigurationError: an option is unknown, null, or has a wrong value.
        """
        checked: dict[str, str] = {}
        for name, text in configs.items():
            row = TOPIC_DEFINITION.keys.get(name)
            if row is None:
                raise InvalidConfigurationError(f"unknown topic config name: {name}")
            if text is None:
                raise InvalidConfigurationError(f"null value for topic config: {name}")
            try:
                row.convert(text)
            except ValueError as error:
                raise InvalidConfigurationError(
                    f"invalid value {text!r} for topic config {name}: {error}"
                ) from None
            checked[name] = text
        return checked

    def _server_value(self, name: str) -> Any:
        if name not in _COARSER or self._config[name] is not None:
            return self._config[name]
        for coarser, unit_ms in _COARSER[name]:
            value = self._config[coarser]
            if value is not None:
                return value if value < 0 else value * unit_ms
        raise AssertionError(f"{name} has no default in any unit")
