"""Configurations of topics, brokers and groups: list, describe."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pyclient.admin.sending.calls import AdminCalls, member_of
from pyclient.admin.sending.results import as_dict
from pyclient.admin.sending.work import Route, Work, raise_first_error
from pyclient.admin.types.configs import (
    ConfigFilterType,
    ConfigResource,
    ConfigResourceType,
    described_entry,
    is_shown,
    kind_of,
    name_of,
)
from pyclient.errors import for_code
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from pyclient.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from pyclient.timers import Deadline

ResourceKey: TypeAlias = tuple[int, str]
"""The type and the name of a resource."""


class ConfigDescriptionCalls(AdminCalls):
    """The calls that list and describe configurations."""

    def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        include_synonyms: bool = False,
        config_filter: str | ConfigFilterType = "modified",
    ) -> dict[str, dict[str, dict[str, Any]]]:
        """Configuration entries, by kind of resource, name of the resource and key.

        Args:
            config_resources: what to describe.
            include_synonyms: tell the other places too that set an entry.
            config_filter: `modified` (default), `dynamic`, `static`, `default` or `all`.

        Raises:
            KafkaError: a resource could not be described.
        """
        wanted = member_of(ConfigFilterType, config_filter)
        found: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        results = self._describe(config_resources, self._requests.deadline(), include_synonyms)
        for key, result in results.items():
            found[kind_of(key)][result.resource_name] = {
                entry.name: described_entry(as_dict(entry))
                for entry in result.configs
                if is_shown(entry, wanted)
            }
        return dict(found)

    def _describe(
        self,
        resources: Iterable[ConfigResource],
        deadline: Deadline,
        include_synonyms: bool = False,
    ) -> dict[ResourceKey, DescribeConfigsResult]:
        asked = {one.key: one for one in resources}
        outcomes = self._requests.settle(
            Work(
                asked,
                lambda pending: DescribeConfigsRequest(
                    resources=[_to_message(one) for one in pending],
                    include_synonyms=include_synonyms,
                ),
                lambda response: (
                    ((one.resource_type, one.resource_name), one) for one in response.results
                ),
                name_of,
                route_of(asked),
                deadline,
                repeatable=True,
            )
        )
        raise_first_error(outcomes)
        return {key: outcome.result for key, outcome in outcomes.items()}

    def list_config_resources(
        self, resource_types: Iterable[ConfigResourceType | str] | None = None
    ) -> dict[str, list[str]]:
        """The names of resources that have a configuration, by their type.

        Args:
            resource_types: which types; by default all. Before Kafka 4.1 brokers list only
                `client_metrics`.
        """
        wanted = [int(member_of(ConfigResourceType, one)) for one in resource_types or ()]
        request = ListConfigResourcesRequest(resource_types=wanted)
        response = self._requests.ask(request, self._requests.deadline())
        assert isinstance(response, ListConfigResourcesResponse)
        if response.error_code:
            raise for_code(response.error_code)()
        found: defaultdict[str, list[str]] = defaultdict(list)
        for one in response.config_resources:
            found[ConfigResourceType(one.resource_type).name.lower()].append(one.resource_name)
        return dict(found)


def route_of(resources: Mapping[ResourceKey, ConfigResource]) -> Route[ResourceKey]:
    """The route of resources: a broker's to that broker, all others to any."""
    nodes = {key: one.node() for key, one in resources.items()}

    def route(
        keys: Sequence[ResourceKey],
        deadline: Deadline,  # noqa: ARG001
    ) -> Mapping[int | None, Sequence[ResourceKey]]:
        grouped: dict[int | None, list[ResourceKey]] = {}
        for key in keys:
            grouped.setdefault(nodes[key], []).append(key)
        return grouped

    return route


def _to_message(resource: ConfigResource) -> DescribeConfigsResource:
    return DescribeConfigsResource(
        resource_type=resource.resource_type,
        resource_name=resource.name,
        configuration_keys=None if resource.configs is None else list(resource.configs),
    )
