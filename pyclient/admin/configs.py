"""Configurations of topics, brokers and groups: list, describe, alter, reset.

Brokers from 2.3 on change single entries. Older ones only replace a whole configuration: for them,
the current entries are read first and sent along, as in kafka-python. A concurrent change between
the two is lost; this cannot be avoided.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.results import Outcome, Result
from pyclient.admin.sending.routes import by_node
from pyclient.admin.sending.work import Route, Routed, Work, raise_first_error
from pyclient.admin.types.configs import (
    AlterConfigOp,
    ConfigEntry,
    ConfigFilterType,
    ConfigResource,
    ConfigResourceType,
    described_entry,
    is_shown,
    kind_of,
    name_of,
)
from pyclient.admin.types.enums import member_of
from pyclient.errors import UnsupportedVersionError
from pyclient.protocol.messages import alter_configs as whole
from pyclient.protocol.messages import incremental_alter_configs as single
from pyclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from pyclient.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from pyclient.protocol.schema import Message
from pyclient.timers import Deadline

ResourceKey: TypeAlias = tuple[int, str]
"""The type and the name of a resource."""
_Outcomes: TypeAlias = Mapping[ResourceKey, Outcome[Any]]
_Values: TypeAlias = Mapping[str, str]
"""What entries are set to."""
_Changes: TypeAlias = Mapping[str, tuple[AlterConfigOp, str | None]]
"""The operation and the value, by key."""


class ConfigCalls(AdminCalls):
    """The calls that describe and change configurations."""

    def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        include_synonyms: bool = False,
        config_filter: str | ConfigFilterType = "modified",
    ) -> dict[str, dict[str, dict[str, ConfigEntry]]]:
        """Configuration entries, by kind of resource, name of the resource and key.

        Args:
            config_resources: what to describe.
            include_synonyms: tell the other places too that set an entry.
            config_filter: `modified` (default), `dynamic`, `static`, `default` or `all`.

        Raises:
            KafkaError: a resource could not be described.
        """
        wanted = member_of(ConfigFilterType, config_filter)
        found: defaultdict[str, dict[str, dict[str, ConfigEntry]]] = defaultdict(dict)
        results = self._describe(config_resources, self._requests.deadline(), include_synonyms)
        for key, result in results.items():
            found[kind_of(key)][result.resource_name] = {
                entry.name: described_entry(entry)
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
                _route_of(asked),
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
        deadline = self._requests.deadline()
        response = self._requests.ask(request, ListConfigResourcesResponse, deadline)
        found: defaultdict[str, list[str]] = defaultdict(list)
        for one in response.config_resources:
            found[ConfigResourceType(one.resource_type).name.lower()].append(one.resource_name)
        return dict(found)

    def alter_configs(
        self,
        config_resources: Iterable[ConfigResource],
        validate_only: bool = False,
        raise_on_unknown: bool = True,
        incremental: bool | None = None,
    ) -> dict[str, dict[str, str]]:
        """Change configuration entries; `OK` or the error, by kind and name of the resource.

        Args:
            config_resources: the changes. `configs` of each is a dict: a value by key, or a tuple
                of an operation (`set`, `delete`, `append`, `subtract`) and a value.
            validate_only: only check whether the change is possible.
            raise_on_unknown: first check that all keys exist and can be changed.
            incremental: True sends single changes (Kafka 2.3 and later), False a whole
                configuration, which can only set entries. Default: what the broker supports.

        Raises:
            ValueError: a key is unknown, or an operation is not possible.
            KafkaError: the change was not attempted, or its outcome is unknown.
        """
        resources = {one.key: one for one in config_resources}
        changes = {key: _operations(one) for key, one in resources.items()}
        deadline = self._requests.deadline()
        if raise_on_unknown:
            self._check_keys(resources, deadline)

        def replaced(key: ResourceKey, now: _Values) -> _Values:
            wanted = dict(now)
            for name, (operation, value) in changes[key].items():
                if operation is not AlterConfigOp.SET or value is None:
                    raise ValueError(
                        f"{name_of(key)}: {name} can't be changed by {operation.name.lower()}:"
                        " the broker can only set entries (Kafka 2.3 and later can)"
                    )
                wanted[name] = value
            return wanted

        return _shown(
            self._alter(resources, changes, replaced, deadline, validate_only, incremental)
        )

    def reset_configs(
        self,
        config_resources: Iterable[ConfigResource],
        validate_only: bool = False,
        raise_on_unknown: bool = True,
        incremental: bool | None = None,
    ) -> dict[str, dict[str, str]]:
        """Reset entries to their defaults; see `alter_configs`.

        Args:
            config_resources: what to reset. `configs` of each lists keys; without keys, all
                changed entries are reset.
            validate_only: only check whether the change is possible.
            raise_on_unknown: first check that all keys exist and can be changed.
            incremental: as in `alter_configs`.
        """
        resources = {one.key: one for one in config_resources}
        deadline = self._requests.deadline()
        if raise_on_unknown:
            self._check_keys(resources, deadline)
        without_keys = {key: one for key, one in resources.items() if not one.configs}
        modified = self._modified(without_keys, deadline)
        named = {key: list(one.configs or modified[key]) for key, one in resources.items()}
        deletions = {
            key: dict.fromkeys(names, (AlterConfigOp.DELETE, None)) for key, names in named.items()
        }

        def replaced(key: ResourceKey, now: _Values) -> _Values:
            return {name: value for name, value in now.items() if name not in deletions[key]}

        return _shown(
            self._alter(resources, deletions, replaced, deadline, validate_only, incremental)
        )

    def _alter(
        self,
        resources: Mapping[ResourceKey, ConfigResource],
        changes: Mapping[ResourceKey, _Changes],
        replaced: Callable[[ResourceKey, _Values], _Values],
        deadline: Deadline,
        validate_only: bool,
        incremental: bool | None,
    ) -> _Outcomes:
        """Send the changes; `replaced` returns the whole new configuration, given the current."""
        if incremental is not False:
            try:
                return self._settle(
                    resources, lambda keys: _single_request(keys, changes, validate_only), deadline
                )
            except UnsupportedVersionError:
                if incremental:
                    raise
        now = self._modified(resources, deadline)
        wanted = {key: replaced(key, now[key]) for key in resources}
        return self._settle(
            resources, lambda keys: _whole_request(keys, wanted, validate_only), deadline
        )

    def _settle(
        self,
        resources: Mapping[ResourceKey, ConfigResource],
        make_request: Callable[[list[ResourceKey]], Message],
        deadline: Deadline,
    ) -> _Outcomes:
        def results_of(response: Any) -> Iterable[tuple[ResourceKey, Result]]:
            return (((one.resource_type, one.resource_name), one) for one in response.responses)

        keys = {key: key for key in resources}
        route = _route_of(resources)
        return self._requests.settle(Work(keys, make_request, results_of, name_of, route, deadline))

    def _modified(
        self, resources: Mapping[ResourceKey, ConfigResource], deadline: Deadline
    ) -> dict[ResourceKey, _Values]:
        """The current entries of each resource; secret values are not included."""
        found = self._describe(_as_wholes(resources), deadline)
        return {
            key: {
                entry.name: entry.value
                for entry in result.configs
                if is_shown(entry, ConfigFilterType.MODIFIED) and entry.value is not None
            }
            for key, result in found.items()
        }

    def _check_keys(
        self, resources: Mapping[ResourceKey, ConfigResource], deadline: Deadline
    ) -> None:
        # For the defaults of all brokers, only changed entries are described.
        named = {key: one for key, one in resources.items() if one.name}
        for key, result in self._describe(_as_wholes(named), deadline).items():
            known = {one.name for one in result.configs if is_shown(one, ConfigFilterType.DYNAMIC)}
            unknown = [name for name in resources[key].configs or () if name not in known]
            if unknown:
                raise ValueError(
                    f"{name_of(key)} has no {', '.join(unknown)} that could be changed"
                    " (raise_on_unknown=False leaves that to the broker)"
                )


def _route_of(resources: Mapping[ResourceKey, ConfigResource]) -> Route[ResourceKey]:
    """The route of resources: a broker's to that broker, all others to any."""
    nodes = {key: one.node() for key, one in resources.items()}

    def route(keys: Sequence[ResourceKey], _deadline: Deadline) -> Routed[ResourceKey]:
        return Routed(by_node((nodes[key], key) for key in keys))

    return route


def _to_message(resource: ConfigResource) -> DescribeConfigsResource:
    return DescribeConfigsResource(
        resource_type=resource.resource_type,
        resource_name=resource.name,
        configuration_keys=None if resource.configs is None else list(resource.configs),
    )


def _as_wholes(resources: Mapping[ResourceKey, ConfigResource]) -> list[ConfigResource]:
    return [ConfigResource(one.resource_type, one.name) for one in resources.values()]


def _operations(resource: ConfigResource) -> _Changes:
    if not isinstance(resource.configs, Mapping):
        raise TypeError(f"{resource!r}: what is to be changed is a dict of values by key")
    found: dict[str, tuple[AlterConfigOp, str | None]] = {}
    for name, wanted in resource.configs.items():
        operation, value = wanted if isinstance(wanted, tuple) else (AlterConfigOp.SET, wanted)
        operation = member_of(AlterConfigOp, operation)
        has_value = operation is not AlterConfigOp.DELETE and value is not None
        found[name] = operation, _text(value) if has_value else None
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _single_request(
    keys: list[ResourceKey], changes: Mapping[ResourceKey, _Changes], validate_only: bool
) -> Message:
    return single.IncrementalAlterConfigsRequest(
        resources=[
            single.AlterConfigsResource(
                resource_type=key[0],
                resource_name=key[1],
                configs=[
                    single.AlterableConfig(name=name, config_operation=operation, value=value)
                    for name, (operation, value) in changes[key].items()
                ],
            )
            for key in keys
        ],
        validate_only=validate_only,
    )


def _whole_request(
    keys: list[ResourceKey], wanted: Mapping[ResourceKey, _Values], validate_only: bool
) -> Message:
    return whole.AlterConfigsRequest(
        resources=[
            whole.AlterConfigsResource(
                resource_type=key[0],
                resource_name=key[1],
                configs=[
                    whole.AlterableConfig(name=name, value=value)
                    for name, value in wanted[key].items()
                ],
            )
            for key in keys
        ],
        validate_only=validate_only,
    )


def _shown(outcomes: _Outcomes) -> dict[str, dict[str, str]]:
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for key, outcome in outcomes.items():
        found[kind_of(key)][key[1]] = "OK" if outcome.error is None else str(outcome.error)
    return dict(found)
