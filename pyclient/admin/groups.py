"""Consumer groups: list, describe, delete."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.results import Outcome, as_dict
from pyclient.admin.sending.routes import CoordinatorRoute
from pyclient.admin.sending.work import Route, Work
from pyclient.errors import ProtocolError, for_code
from pyclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyclient.protocol.messages.delete_groups import DeleteGroupsRequest
from pyclient.protocol.messages.describe_groups import DescribeGroupsRequest
from pyclient.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pyclient.protocol.schema import Message

_CONSUMER: Final = "consumer"
_VERSION_BYTES: Final = 2

AnyMessage = TypeVar("AnyMessage", bound=Message)


class GroupCalls(AdminCalls):
    """The calls that list, describe and delete groups."""

    def list_groups(
        self,
        broker_ids: Iterable[int] | None = None,
        states_filter: Iterable[str] | None = None,
        types_filter: Iterable[str] | None = None,
    ) -> list[dict[str, Any]]:
        """All groups, or those that certain brokers coordinate, or of certain states and types.

        Args:
            broker_ids: the brokers to ask; by default all of them.
            states_filter: as in `["Stable", "Empty"]` (Kafka 2.6 and later).
            types_filter: as in `["classic"]` (Kafka 3.8 and later).
        """
        deadline = self._requests.deadline()
        request = ListGroupsRequest(
            states_filter=list(states_filter or ()), types_filter=list(types_filter or ())
        )
        groups: list[dict[str, Any]] = []
        for broker in self._requests.brokers() if broker_ids is None else broker_ids:

            def list_once(broker: int = broker) -> ListGroupsResponse:
                response = self._requests.ask_once(request, deadline, broker)
                assert isinstance(response, ListGroupsResponse)
                if response.error_code:
                    raise for_code(response.error_code)(f"broker {broker}")
                return response

            response = self._requests.repeat(list_once, deadline)
            groups.extend(as_dict(group) for group in response.groups)
        return groups

    def describe_groups(
        self, group_ids: Iterable[str], group_coordinator_id: int | None = None
    ) -> dict[str, dict[str, Any]]:
        """Groups with their members, subscriptions and assignments.

        A group that cannot be described has an `error`. An unknown group has the state Dead.

        Args:
            group_ids: which groups.
            group_coordinator_id: the coordinator of all of them, if it is known already.
        """
        outcomes = self._settle_groups(
            group_ids,
            group_coordinator_id,
            lambda pending: DescribeGroupsRequest(groups=pending),
            lambda response: response.groups,
            repeatable=True,
        )
        described = {}
        for name, (result, error) in outcomes.items():
            group = as_dict(result)
            for key in ("error_code", "error_message", "authorized_operations"):
                del group[key]
            group["error"] = None if error is None else str(error)
            if result.protocol_type == _CONSUMER:
                for member in group["members"]:
                    _read_member(member)
            described[name] = group
        return described

    def delete_groups(
        self, group_ids: Iterable[str], group_coordinator_id: int | None = None
    ) -> dict[str, str]:
        """Delete groups without members, and their offsets; `OK` or the error's name by group.

        Args:
            group_ids: which groups.
            group_coordinator_id: the coordinator of all of them, if it is known already.
        """
        outcomes = self._settle_groups(
            group_ids,
            group_coordinator_id,
            lambda pending: DeleteGroupsRequest(groups_names=pending),
            lambda response: response.results,
        )
        return {
            name: "OK" if outcome.error is None else type(outcome.error).__name__
            for name, outcome in outcomes.items()
        }

    def _settle_groups(
        self,
        group_ids: Iterable[str],
        coordinator: int | None,
        make_request: Callable[[list[str]], Message],
        results_of: Callable[[Any], Iterable[Any]],
        *,
        repeatable: bool = False,
    ) -> dict[str, Outcome[Any]]:
        """Have the coordinators deal with groups; `results_of` a response has one per group."""
        return self._requests.settle(
            Work(
                {name: name for name in group_ids},
                make_request,
                lambda response: ((one.group_id, one) for one in results_of(response)),
                _name,
                self._coordinators(coordinator),
                self._requests.deadline(),
                repeatable=repeatable,
            )
        )

    def _coordinators(self, coordinator: int | None) -> Route[str]:
        if coordinator is None:
            return CoordinatorRoute(self._requests)
        return lambda keys, _deadline: {coordinator: keys}


def _name(group: str) -> str:
    return f"group {group!r}"


def _read_member(member: dict[str, Any]) -> None:
    """Decode a member's subscription and assignment, if possible."""
    member["member_metadata"] = _readable(ConsumerProtocolSubscription, member["member_metadata"])
    member["member_assignment"] = _readable(ConsumerProtocolAssignment, member["member_assignment"])


def _readable(cls: type[AnyMessage], blob: bytes) -> dict[str, Any] | bytes:
    """The message after the version number; the bytes unchanged if decoding fails."""
    if len(blob) < _VERSION_BYTES:
        return blob
    version = min(int.from_bytes(blob[:_VERSION_BYTES]), cls.stable.highest)
    try:
        # A newer member may have appended fields; they are ignored.
        return as_dict(cls.decode_from(blob, _VERSION_BYTES, version)[0])
    except ProtocolError:
        return blob
