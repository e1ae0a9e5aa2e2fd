"""Options as DescribeConfigs and CreateTopics show them: value, source, synonyms.

Pure functions over the tables of `config`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from broker_stub.config.broker_config import DYNAMIC_NAMES, BrokerConfig
from broker_stub.config.keys import BROKER_DEFINITION, TOPIC_DEFINITION, TOPIC_SYNONYMS
from broker_stub.integer_types import INT, LONG, SHORT
from pyclient.config.definition import SECRET, ConfigKey, Secret

TOPIC_SOURCE: Final = 1
DYNAMIC_BROKER_SOURCE: Final = 2
DYNAMIC_DEFAULT_SOURCE: Final = 3
STATIC_BROKER_SOURCE: Final = 4
DEFAULT_SOURCE: Final = 5

_PASSWORD: Final = 9
_WIRE_TYPES: Final[Mapping[object, int]] = {
    bool: 1,
    str: 2,
    INT: 3,
    SHORT: 4,
    LONG: 5,
    float: 6,
    list: 7,
    SECRET: _PASSWORD,
}


class ConfigSynonym(NamedTuple):
    """One of the places where an option can be set."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """An option of a topic or of the broker; the first of its `synonyms` is in force."""

    name: str
    value: str | None
    source: int
    read_only: bool
    wire_type: int
    documentation: str
    synonyms: tuple[ConfigSynonym, ...]

    @property
    def sensitive(self) -> bool:
        """Whether its value is hidden from clients."""
        return self.wire_type == _PASSWORD


def topic_entries(config: BrokerConfig, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every option of a topic with these overrides."""
    return [
        _topic_entry(config, row, overrides.get(name))
        for name, row in sorted(TOPIC_DEFINITION.keys.items())
    ]


def broker_entries(config: BrokerConfig) -> list[ConfigEntry]:
    """Every option of the broker; only the defaults of topics can be changed."""
    return [
        _entry(row, _broker_synonyms(config, name), read_only=name not in DYNAMIC_NAMES)
        for name, row in sorted(BROKER_DEFINITION.keys.items())
    ]


def default_broker_entries(config: BrokerConfig) -> list[ConfigEntry]:
    """Only the options that were set for all brokers while they run."""
    return [
        _entry(
            BROKER_DEFINITION.keys[name],
            [ConfigSynonym(name, value, DYNAMIC_DEFAULT_SOURCE)],
            read_only=False,
        )
        for name, value in sorted(config.dynamic_default.items())
        if name in BROKER_DEFINITION.keys
    ]


def _topic_entry(config: BrokerConfig, row: ConfigKey, override: str | None) -> ConfigEntry:
    server_name = TOPIC_SYNONYMS[row.name]
    synonyms = _dynamic_synonyms(config, server_name)
    if override is not None:
        synonyms.insert(0, ConfigSynonym(row.name, override, TOPIC_SOURCE))
    if config.topic_default_is_explicit(row.name):
        value = as_text(config.static_topic_default(row.name))
        synonyms.append(ConfigSynonym(server_name, value, STATIC_BROKER_SOURCE))
    synonyms.append(ConfigSynonym(server_name, as_text(row.default), DEFAULT_SOURCE))
    return _entry(row, synonyms, read_only=False)


def _broker_synonyms(config: BrokerConfig, name: str) -> list[ConfigSynonym]:
    synonyms = _dynamic_synonyms(config, name)
    if config.is_explicit(name):
        synonyms.append(ConfigSynonym(name, as_text(config[name]), STATIC_BROKER_SOURCE))
    default = as_text(BROKER_DEFINITION.keys[name].default)
    return [*synonyms, ConfigSynonym(name, default, DEFAULT_SOURCE)]


def _dynamic_synonyms(config: BrokerConfig, server_name: str) -> list[ConfigSynonym]:
    layers = (
        (config.dynamic_broker, DYNAMIC_BROKER_SOURCE),
        (config.dynamic_default, DYNAMIC_DEFAULT_SOURCE),
    )
    return [
        ConfigSynonym(server_name, texts[server_name], source)
        for texts, source in layers
        if server_name in texts
    ]


def _entry(row: ConfigKey, synonyms: list[ConfigSynonym], *, read_only: bool) -> ConfigEntry:
    return ConfigEntry(
        name=row.name,
        value=synonyms[0].value,
        source=synonyms[0].source,
        read_only=read_only,
        wire_type=_WIRE_TYPES[row.type],
        documentation=row.doc,
        synonyms=tuple(synonyms),
    )


def as_text(value: Any) -> str | None:
    """A value as Kafka writes it; None for a secret."""
    if value is None or isinstance(value, Secret):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)
