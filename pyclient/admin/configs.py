"""Configurations of topics, brokers and groups: describe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from typing import Any, Final

from pyclient.admin.requests import AdminRequests
from pyclient.admin.results import as_dict, error_of
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)


class ConfigResourceType(IntEnum):
    """What has a configuration."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSourceType(IntEnum):
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


class ConfigType(IntEnum):
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


class ConfigFilter(Enum):
    """Which entries a description has."""

    ALL = "all"
    MODIFIED = "modified"
    DYNAMIC = "dynamic"
    STATIC = "static"
    DEFAULT = "default"


_NOT_MODIFIED: Final = frozenset(
    {
        ConfigSourceType.DYNAMIC_DEFAULT_BROKER_CONFIG,
        ConfigSourceType.STATIC_BROKER_CONFIG,
        ConfigSourceType.DEFAULT_CONFIG,
    }
)
# Each broker knows only its own.
_OF_ONE_BROKER: Final = frozenset({ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER})


class ConfigResource:
    """Something that has a configuration, and the entries that matter; None for all."""

    def __init__(
        self,
        resource_type: ConfigResourceType | str,
        name: str,
        configs: Iterable[str] | Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(resource_type, str):
            resource_type = ConfigResourceType[resource_type.upper()]
        self.resource_type = ConfigResourceType(resource_type)
        self.name = str(name)
        self.configs = configs

    def __repr__(self) -> str:
        return f"ConfigResource({self.resource_type.name}, {self.name!r}, {self.configs!r})"


def describe_configs(
    requests: AdminRequests,
    resources: Iterable[ConfigResource],
    include_synonyms: bool,
    config_filter: str | ConfigFilter,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Entries by kind of resource, name of the resource and key."""
    wanted = ConfigFilter(config_filter)
    deadline = requests.deadline(None)
    found: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for node, of_node in _by_node(resources).items():
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=one.resource_type,
                    resource_name=one.name,
                    configuration_keys=None if one.configs is None else list(one.configs),
                )
                for one in of_node
            ],
            include_synonyms=include_synonyms,
        )
        response = requests.ask(request, deadline, node=node)
        assert isinstance(response, DescribeConfigsResponse)
        for result in response.results:
            kind = ConfigResourceType(result.resource_type).name.lower()
            error = error_of(f"{kind} {result.resource_name!r}", result)
            if error is not None:
                raise error
            found[kind][result.resource_name] = {
                entry.name: _entry(entry) for entry in result.configs if _is_wanted(entry, wanted)
            }
    return dict(found)


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    grouped: dict[int | None, list[ConfigResource]] = {}
    for one in resources:
        node = int(one.name) if one.resource_type in _OF_ONE_BROKER else None
        grouped.setdefault(node, []).append(one)
    return grouped


def _is_wanted(entry: DescribeConfigsResourceResult, wanted: ConfigFilter) -> bool:
    is_modified = entry.config_source not in _NOT_MODIFIED
    return {
        ConfigFilter.ALL: True,
        ConfigFilter.MODIFIED: is_modified,
        ConfigFilter.DEFAULT: not is_modified,
        ConfigFilter.DYNAMIC: not entry.read_only,
        ConfigFilter.STATIC: entry.config_source == ConfigSourceType.STATIC_BROKER_CONFIG,
    }[wanted]


def _entry(entry: DescribeConfigsResourceResult) -> dict[str, Any]:
    described = as_dict(entry)
    del described["name"]
    described["config_source"] = ConfigSourceType(entry.config_source).name
    described["config_type"] = ConfigType(entry.config_type).name
    for synonym in described["synonyms"]:
        synonym["source"] = ConfigSourceType(synonym["source"]).name
    return described
