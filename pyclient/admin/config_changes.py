"""Configurations of topics, brokers and groups: alter, reset.

Brokers from 2.3 on change single entries. Older ones only replace a whole configuration: for them,
the current entries are read first and sent along, as in kafka-python. A concurrent change between
the two is lost; this cannot be avoided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyclient.admin.configs import ConfigDescriptionCalls, ResourceKey, route_of
from pyclient.admin.sending.calls import member_of
from pyclient.admin.sending.results import Outcome, Result
from pyclient.admin.sending.work import Work
from pyclient.admin.types.configs import (
    AlterConfigOp,
    ConfigFilterType,
    ConfigResource,
    is_shown,
    kind_of,
    name_of,
)
from pyclient.errors import UnsupportedVersionError
from pyclient.protocol.messages import alter_configs as whole
from pyclient.protocol.messages import incremental_alter_configs as single
from pyclient.protocol.schema import Message
from pyclient.timers import Deadline

_Outcomes = Mapping[ResourceKey, Outcome[Any]]
_Values = Mapping[str, str]
"""What entries are set to."""


class ConfigCalls(ConfigDescriptionCalls):
    """Look at configurations, and change them."""

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
        route = route_of(resources)
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


_Changes = Mapping[str, tuple[AlterConfigOp, str | None]]
"""The operation and the value, by key."""


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
