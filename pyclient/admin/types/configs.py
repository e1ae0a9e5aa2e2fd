"""The types of configurations: resources, entries, operations."""

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, ClassVar, Final

from pyclient.admin.types.enums import FromTheWire, member_of
from pyclient.admin.types.result import AdminResult
from pyclient.protocol.messages.create_topics import CreatableTopicConfigs
from pyclient.protocol.messages.describe_configs import DescribeConfigsResourceResult


class ConfigResourceType(IntEnum):
    """What has a configuration."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSourceType(FromTheWire):
    """Where the value of an entry comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(FromTheWire):
    """The type of an entry's value."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigFilterType(IntEnum):
    """Which entries a description has."""

    ALL = 0
    DYNAMIC = 1
    MODIFIED = 2
    DEFAULT = 3
    STATIC = 4


class AlterConfigOp(IntEnum):
    """What to do to an entry: the last two are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_NOT_MODIFIED: Final = frozenset(
    {
        ConfigSourceType.DYNAMIC_DEFAULT_BROKER_CONFIG,
        ConfigSourceType.STATIC_BROKER_CONFIG,
        ConfigSourceType.DEFAULT_CONFIG,
    }
)
_IS_SHOWN: Final[Mapping[ConfigFilterType, Callable[[DescribeConfigsResourceResult], bool]]] = {
    ConfigFilterType.ALL: lambda _entry: True,
    ConfigFilterType.DYNAMIC: lambda entry: not entry.read_only,
    ConfigFilterType.MODIFIED: lambda entry: entry.config_source not in _NOT_MODIFIED,
    ConfigFilterType.DEFAULT: lambda entry: entry.config_source in _NOT_MODIFIED,
    ConfigFilterType.STATIC: lambda entry: (
        entry.config_source == ConfigSourceType.STATIC_BROKER_CONFIG
    ),
}
# Each broker knows only its own.
_OF_ONE_BROKER: Final = frozenset({ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER})


class ConfigSynonym(AdminResult):
    """Another place that sets an entry."""

    name: str
    value: str | None
    source: str


class ConfigEntry(AdminResult):
    """A configuration entry, and where its value comes from.

    The entries of a topic that was just created have no synonyms, type and documentation.
    """

    PARTS: ClassVar = {"synonyms": ConfigSynonym}

    value: str | None
    read_only: bool
    config_source: str
    is_sensitive: bool
    synonyms: list[ConfigSynonym]
    config_type: str
    documentation: str | None


class ConfigResource:
    """Something that has a configuration, and the entries that matter; None for all.

    To change entries, `configs` is a dict: a value by key, or an operation and a value, as in
    `{"cleanup.policy": ("append", "compact")}`. A broker without a name stands for all brokers.
    """

    def __init__(
        self,
        resource_type: ConfigResourceType | str,
        name: str | int,
        configs: Iterable[str] | Mapping[str, Any] | None = None,
    ) -> None:
        self.resource_type = member_of(ConfigResourceType, resource_type)
        self.name = str(name)
        self.configs = configs

    @property
    def key(self) -> tuple[int, str]:
        """The resource's identity: type and name."""
        return int(self.resource_type), self.name

    def node(self) -> int | None:
        """The id of the only broker that can serve it; None if any can.

        Raises:
            ValueError: it is a broker whose name is no number.
        """
        if self.resource_type not in _OF_ONE_BROKER or not self.name:
            return None
        try:
            return int(self.name)
        except ValueError:
            raise ValueError(f"{self!r}: a broker's name is its id, a number") from None

    def __repr__(self) -> str:
        return f"ConfigResource({self.resource_type.name}, {self.name!r}, {self.configs!r})"


def name_of(key: tuple[int, str]) -> str:
    """What errors call a resource, given its key."""
    return f"{kind_of(key)} {key[1]!r}"


def kind_of(key: tuple[int, str]) -> str:
    """The type of a resource in lower case, given its key."""
    return ConfigResourceType(key[0]).name.lower()


def is_shown(entry: DescribeConfigsResourceResult, wanted: ConfigFilterType) -> bool:
    """Whether a description with this filter has the entry."""
    return _IS_SHOWN[wanted](entry)


def described_entry(entry: DescribeConfigsResourceResult | CreatableTopicConfigs) -> ConfigEntry:
    """An entry of a response as kafka-python shows it: numbers by their names."""
    described = ConfigEntry.of(entry)
    del described["name"]  # it is the key
    described["config_source"] = ConfigSourceType(described["config_source"]).name
    if "config_type" in described:
        described["config_type"] = ConfigType(described["config_type"]).name
    for synonym in described.get("synonyms", ()):
        synonym["source"] = ConfigSourceType(synonym["source"]).name
    return described
