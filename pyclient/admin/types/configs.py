"""The types of configurations: resources, entries, operations."""

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Final, Self

from pyclient.admin.sending.calls import member_of
from pyclient.protocol.messages.describe_configs import DescribeConfigsResourceResult


class ConfigResourceType(IntEnum):
    """What has a configuration."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class _FromTheWire(IntEnum):
    """A newer broker may send values that are not known here."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls(0) if isinstance(value, int) else None


class ConfigSourceType(_FromTheWire):
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


class ConfigType(_FromTheWire):
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


def described_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of a response as kafka-python shows it: numbers by their names."""
    del entry["name"]  # it is the key
    entry["config_source"] = ConfigSourceType(entry["config_source"]).name
    if "config_type" in entry:
        entry["config_type"] = ConfigType(entry["config_type"]).name
    for synonym in entry.get("synonyms", ()):
        synonym["source"] = ConfigSourceType(synonym["source"]).name
    return entry
