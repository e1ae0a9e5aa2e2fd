"""Checks changes of configurations, and makes the records for them. Pure functions.

Topics and the broker have a configuration; for the broker, an empty name stands for all brokers.
A change is a function from the options set now to those to set, so that AlterConfigs and
IncrementalAlterConfigs share the checks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from broker_stub.config.broker_config import BrokerConfig
from broker_stub.config.entries import broker_entries, topic_entries
from broker_stub.config.keys import BROKER_DEFINITION, MIN_INSYNC_REPLICAS, TOPIC_DEFINITION
from broker_stub.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, ClusterImage
from broker_stub.metadata.topics import check_name
from pyclient.error_codes import (
    InvalidConfigurationError,
    InvalidRequestError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.metadata_records import ConfigRecord
from pyclient.protocol.schema import Message

SET, DELETE, APPEND, SUBTRACT = range(4)
_OPERATIONS: Final = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}

# Broker loggers, client metrics and groups: see SKIPPED.md.
UNSERVED_RESOURCES: Final = frozenset({8, 16, 32})

Configs = Mapping[str, str]


class ConfigChange(NamedTuple):
    """A change of one resource: `wanted` maps what is set to what is to be set."""

    resource_type: int
    resource_name: str
    wanted: Callable[[ConfigView], Configs]


class ConfigOperation(NamedTuple):
    """A change to one option."""

    name: str
    operation: int
    value: str | None


class ConfigView(NamedTuple):
    """A resource's configuration: the options set on it, and the effective values."""

    given: Configs
    in_force: Mapping[str, str | None]
    lists: frozenset[str]
    """The options whose values are lists."""


def check_resource(
    resource_type: int, resource_name: str, image: ClusterImage, node_id: int, *, altering: bool
) -> None:
    """Refuse a resource that has no configuration here.

    Raises:
        InvalidTopicError, UnknownTopicOrPartitionError: there is no such topic.
        InvalidRequestError: it is another broker, or another kind of resource.
    """
    if resource_type == TOPIC_RESOURCE:
        check_name(resource_name)
        if image.topic(resource_name) is None:
            raise UnknownTopicOrPartitionError(f"The topic '{resource_name}' does not exist.")
    elif resource_type == BROKER_RESOURCE:
        _check_broker(resource_name, node_id, altering=altering)
    elif resource_type in UNSERVED_RESOURCES:
        raise InvalidRequestError(f"resources of type {resource_type} have no configuration here")
    else:
        raise InvalidRequestError(f"Unknown resource type {resource_type}")


def _check_broker(name: str, node_id: int, *, altering: bool) -> None:
    if not name:
        return
    try:
        broker_id = int(name)
    except ValueError:
        noun = "Node" if altering else "Broker"
        raise InvalidRequestError(f"{noun} id must be an integer, but it is: {name}") from None
    if broker_id != node_id:
        expected = f"{node_id}" if altering else f"{node_id} or empty string"
        raise InvalidRequestError(
            f"Unexpected broker id, expected {expected}, but received {broker_id}"
        )


def plan_change(
    change: ConfigChange, image: ClusterImage, config: BrokerConfig, node_id: int
) -> list[Message]:
    """Check a change, and decide what has to be recorded.

    Only changed options are checked: a directory written by Apache Kafka may have options that are
    unknown here, and these must not block other changes.

    Raises:
        InvalidRequestError, InvalidConfigurationError, InvalidTopicError,
        UnknownTopicOrPartitionError: as their names say.
    """
    resource_type, resource_name, _ = change
    if resource_type == TOPIC_RESOURCE and not resource_name:
        raise InvalidRequestError("Default topic resources are not allowed.")
    check_resource(resource_type, resource_name, image, node_id, altering=True)
    current = image.config(resource_type, resource_name)
    if resource_type == BROKER_RESOURCE and not resource_name:
        current = config.dynamic_default
    wanted = change.wanted(_view(resource_type, current, config))
    changed = {name: text for name, text in wanted.items() if current.get(name) != text}
    if resource_type == TOPIC_RESOURCE:
        config.check_topic(changed, wanted)
    else:
        config.check_dynamic(changed)
    gone = dict.fromkeys(name for name in current if name not in wanted)
    if resource_type == BROKER_RESOURCE:
        _check_minimum(resource_name, changed, gone)
    return [
        ConfigRecord(
            resource_type=resource_type, resource_name=resource_name, name=name, value=value
        )
        for name, value in {**changed, **gone}.items()
    ]


def _check_minimum(resource_name: str, changed: Collection[str], gone: Collection[str]) -> None:
    """Allow `min.insync.replicas` only at the cluster level, as Apache Kafka does since 4.1."""
    name = MIN_INSYNC_REPLICAS.name
    if resource_name and (name in changed or name in gone):
        raise InvalidConfigurationError(
            f"Broker-level {name} cannot be altered while ELR is enabled."
        )
    if name in gone:
        raise InvalidConfigurationError(
            f"Cluster-level {name} cannot be removed while ELR is enabled."
        )


def replace_with(configs: Sequence[tuple[str, str | None]]) -> Callable[[ConfigView], Configs]:
    """Set these options, and no others.

    Raises:
        InvalidRequestError: an option is named twice, or its value is null.
    """
    wanted = _by_name(configs)

    def replace(_view: ConfigView) -> Configs:
        return wanted

    return replace


def carry_out(operations: Sequence[ConfigOperation]) -> Callable[[ConfigView], Configs]:
    """Change these options, and leave the others as they are.

    Raises:
        InvalidRequestError: an option is named twice, its value is null, or the operation is
            unknown.
    """
    for one in operations:
        if one.operation not in _OPERATIONS:
            raise InvalidRequestError(f"operation {one.operation} on {one.name} is unknown")
    # Deleting ignores the value.
    _by_name([(one.name, "" if one.operation == DELETE else one.value) for one in operations])

    def change(view: ConfigView) -> Configs:
        wanted = dict(view.given)
        for one in operations:
            if one.operation == DELETE:
                wanted.pop(one.name, None)
            else:
                wanted[one.name] = _operated(one, view)
        return wanted

    return change


def _operated(operation: ConfigOperation, view: ConfigView) -> str:
    text = operation.value
    assert text is not None
    if operation.operation == SET:
        return text
    if operation.name not in view.lists:
        raise InvalidConfigurationError(
            f"Can't {_OPERATIONS[operation.operation]} to key {operation.name} because its type is "
            "not LIST."
        )
    items = _items(view.in_force.get(operation.name) or "")
    named = _items(text)
    if operation.operation == APPEND:
        items += [item for item in named if item not in items]
    else:
        items = [item for item in items if item not in named]
    return ",".join(items)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _by_name(configs: Sequence[tuple[str, str | None]]) -> Configs:
    found: dict[str, str] = {}
    for name, text in configs:
        if name in found:
            raise InvalidRequestError("Error due to duplicate config keys")
        if text is None:
            raise InvalidRequestError(f"Null value not supported for : {name}")
        found[name] = text
    return found


def _view(resource_type: int, current: Configs, config: BrokerConfig) -> ConfigView:
    if resource_type == TOPIC_RESOURCE:
        definition, entries = TOPIC_DEFINITION, topic_entries(config, current)
    else:
        definition, entries = BROKER_DEFINITION, broker_entries(config)
    in_force = {entry.name: entry.value for entry in entries}
    lists = frozenset(name for name, row in definition.keys.items() if row.type is list)
    return ConfigView(current, {**in_force, **current}, lists)
