"""What AlterConfigs and IncrementalAlterConfigs share: a result per resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from broker_stub.handlers._errors import message_of
from broker_stub.metadata.config_changes import ConfigChange, Configs, ConfigView
from pyclient.error_codes import BrokerResponseError, InvalidRequestError

if TYPE_CHECKING:
    from broker_stub.node import Node


class Resource(Protocol):
    """A resource of either request."""

    resource_type: int
    resource_name: str


AnyResource = TypeVar("AnyResource", bound=Resource)


class Outcome(NamedTuple):
    """The result of one resource; no error if it was changed."""

    resource_type: int
    resource_name: str
    error: BrokerResponseError | None

    def fields(self) -> dict[str, Any]:
        """The fields of its result in either response."""
        return {
            "error_code": 0 if self.error is None else self.error.code,
            "error_message": None if self.error is None else message_of(self.error),
            "resource_type": self.resource_type,
            "resource_name": self.resource_name,
        }


def alter(
    node: Node,
    resources: Sequence[AnyResource],
    wanted: Callable[[AnyResource], Callable[[ConfigView], Configs]],
    done: Callable[[list[Outcome]], None],
    *,
    validate_only: bool,
) -> None:
    """Change the configuration of each valid resource.

    Args:
        node: the broker.
        resources: the resources of the request.
        wanted: makes the change of one resource; may raise.
        done: gets the results, in the order of the request.
        validate_only: whether to check without changing anything.
    """
    times = Counter((one.resource_type, one.resource_name) for one in resources)
    refused: dict[int, BrokerResponseError] = {}
    changes: dict[int, ConfigChange] = {}
    for index, one in enumerate(resources):
        resource = (one.resource_type, one.resource_name)
        try:
            if times[resource] > 1:
                raise InvalidRequestError("Each resource must appear at most once.")
            changes[index] = ConfigChange(*resource, wanted(one))
        except BrokerResponseError as error:
            refused[index] = error

    def altered(results: list[BrokerResponseError | None]) -> None:
        errors = {**refused, **dict(zip(changes, results, strict=True))}
        done(
            [
                Outcome(one.resource_type, one.resource_name, errors[index])
                for index, one in enumerate(resources)
            ]
        )

    node.controller.alter_configs(list(changes.values()), altered, validate_only=validate_only)
