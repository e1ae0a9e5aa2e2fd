"""Options as DescribeConfigs and CreateTopics show them: value, source, synonyms.

Pure functions over the tables of `config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from broker_stub.config import (
    BROKER_DEFINITION,
    TOPIC_DEFINITION,
    TOPIC_SYNONYMS,
    BrokerConfig,
)
from pyclient.config.definition import ConfigKey

TOPIC_SOURCE: Final = 1
STATIC_BROKER_SOURCE: Final = 4
DEFAULT_SOURCE: Final = 5

_BOOLEAN, _STRING, _INT, _LONG, _DOUBLE, _LIST = 1, 2, 3, 5, 6, 7
_WIRE_TYPES: Final[Mapping[object, int]] = {
    bool: _BOOLEAN,
    str: _STRING,
    float: _DOUBLE,
    list: _LIST,
}


class ConfigSynonym(NamedTuple):
    """A place that sets an option, or could."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """An option of a topic or of the broker; `synonyms` has the one that counts first."""

    name: str
    value: str | None
    source: int
    read_only: bool
    wire_type: int
    documentation: str
    synonyms: tuple[ConfigSynonym, ...]


def topic_entries(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every option of a topic, given what was set for it."""
    return [
        _topic_entry(config, row, overrides.get(name))
        for name, row in sorted(TOPIC_DEFINITION.keys.items())
    ]


def broker_entries(config: BrokerConfig) -> list[ConfigEntry]:
    """Every option of the broker. None can be changed while it runs."""
    return [
        _entry(row, _broker_synonyms(config, name), read_only=True)
        for name, row in sorted(BROKER_DEFINITION.keys.items())
    ]


def _topic_entry(config: BrokerConfig, row: ConfigKey, override: str | None) -> ConfigEntry:
    server_name = TOPIC_SYNONYMS[row.name]
    synonyms = [ConfigSynonym(server_name, as_text(row.default), DEFAULT_SOURCE)]
    if config.topic_default_is_explicit(row.name):
        value = as_text(config.topic_default(row.name))
        synonyms.insert(0, ConfigSynonym(server_name, value, STATIC_BROKER_SOURCE))
    if override is not None:
        synonyms.insert(0, ConfigSynonym(row.name, override, TOPIC_SOURCE))
    return _entry(row, synonyms, read_only=False)


def _broker_synonyms(config: BrokerConfig, name: str) -> list[ConfigSynonym]:
    default = ConfigSynonym(name, as_text(BROKER_DEFINITION.keys[name].default), DEFAULT_SOURCE)
    if not config.is_explicit(name):
        return [default]
    return [ConfigSynonym(name, as_text(config[name]), STATIC_BROKER_SOURCE), default]


def _entry(row: ConfigKey, synonyms: list[ConfigSynonym], *, read_only: bool) -> ConfigEntry:
    return ConfigEntry(
        name=row.name,
        value=synonyms[0].value,
        source=synonyms[0].source,
        read_only=read_only,
        wire_type=_wire_type(row),
        documentation=row.doc,
        synonyms=tuple(synonyms),
    )


def _wire_type(row: ConfigKey) -> int:
    if row.type is int:
        # Kafka tells int and long apart, we do not; its longs are times and unbounded sizes.
        is_long = row.name.endswith(
            (".ms", "retention.bytes", "flush.messages", "flush.interval.messages")
        )
        return _LONG if is_long else _INT
    return _WIRE_TYPES[row.type]


def as_text(value: Any) -> str | None:
    """A value as Kafka writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)
