"""Groups: list, describe, delete, remove members."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.results import Outcome
from pyclient.admin.sending.routes import CoordinatorRoute, to_coordinator, to_node
from pyclient.admin.sending.work import Route, Work, raise_first_error
from pyclient.admin.types.acls import operation_names
from pyclient.admin.types.enums import member_of
from pyclient.admin.types.groups import (
    GroupDescription,
    GroupInformation,
    GroupListing,
    GroupState,
    GroupType,
    MemberAssignment,
    MemberInformation,
    MemberSubscription,
    MemberToRemove,
)
from pyclient.admin.types.result import AdminResult
from pyclient.error_codes import code_of
from pyclient.errors import (
    BrokerResponseError,
    GroupAuthorizationError,
    GroupNotEmptyError,
    KafkaError,
    NoError,
    ProtocolError,
    UnsupportedVersionError,
    for_code,
)
from pyclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyclient.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest
from pyclient.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from pyclient.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from pyclient.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pyclient.protocol.schema import Message
from pyclient.timers import Deadline

_CONSUMER: Final = "consumer"
_VERSION_BYTES: Final = 2

AnyPart = TypeVar("AnyPart", bound=AdminResult)


class GroupCalls(AdminCalls):
    """The calls that list, describe and delete groups and their members."""

    def list_groups(
        self,
        broker_ids: Iterable[int] | None = None,
        states_filter: Iterable[GroupState | str] | None = None,
        types_filter: Iterable[GroupType | str] | None = None,
    ) -> list[GroupListing]:
        """All groups, or those that certain brokers coordinate, or of certain states and types.

        Args:
            broker_ids: the brokers to ask; by default all of them.
            states_filter: as in `["Stable", "Empty"]` (Kafka 2.6 and later).
            types_filter: as in `["classic"]` (Kafka 3.8 and later).
        """
        deadline = self._requests.deadline()
        request = ListGroupsRequest(
            states_filter=[member_of(GroupState, one).value for one in states_filter or ()],
            types_filter=[member_of(GroupType, one).value for one in types_filter or ()],
        )
        groups: list[GroupListing] = []
        for broker in self._requests.brokers() if broker_ids is None else broker_ids:
            response = self._requests.ask(
                request, ListGroupsResponse, deadline, node=broker, name=f"broker {broker}"
            )
            groups.extend(GroupListing.of(group) for group in response.groups)
        return groups

    def describe_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
    ) -> dict[str, GroupDescription]:
        """Groups with their members, subscriptions and assignments.

        A group that cannot be described has an `error`. An unknown group has the state Dead.

        Args:
            group_ids: which groups.
            group_coordinator_id: the coordinator of all of them, if it is known already.
            include_authorized_operations: tell what this client may do to each (Kafka 2.3 and
                later).
        """
        outcomes = self._describe_groups(
            group_ids, group_coordinator_id, include_authorized_operations
        )
        described = {}
        for name, (result, error) in outcomes.items():
            group = _description(result)
            group["error"] = None if error is None else str(error)
            described[name] = group
        return described

    def _describe_groups(
        self, group_ids: Iterable[str], coordinator: int | None, with_operations: bool
    ) -> dict[str, Outcome[DescribedGroup]]:
        return self._requests.settle(
            Work(
                {name: name for name in group_ids},
                lambda pending: DescribeGroupsRequest(
                    groups=pending, include_authorized_operations=with_operations
                ),
                lambda response: ((one.group_id, one) for one in response.groups),
                _name,
                self._coordinators(coordinator),
                self._requests.deadline(),
                repeatable=True,
                refusal=lambda name, error: DescribedGroup(
                    group_id=name, error_code=code_of(error)
                ),
            )
        )

    def delete_groups(
        self, group_ids: Iterable[str], group_coordinator_id: int | None = None
    ) -> dict[str, str]:
        """Delete groups without members, and their offsets; `OK` or the error's name by group.

        Args:
            group_ids: which groups.
            group_coordinator_id: the coordinator of all of them, if it is known already.
        """
        return {
            name: "OK" if outcome.error is None else _error_name(outcome.error)
            for name, outcome in self._delete_groups(group_ids, group_coordinator_id).items()
        }

    def _delete_groups(
        self, group_ids: Iterable[str], coordinator: int | None
    ) -> dict[str, Outcome[DeletableGroupResult]]:
        return self._requests.settle(
            Work(
                {name: name for name in group_ids},
                lambda pending: DeleteGroupsRequest(groups_names=pending),
                lambda response: ((one.group_id, one) for one in response.results),
                _name,
                self._coordinators(coordinator),
                self._requests.deadline(),
                refusal=lambda name, error: DeletableGroupResult(
                    group_id=name, error_code=code_of(error)
                ),
            )
        )

    def _coordinators(self, coordinator: int | None) -> Route[str]:
        return CoordinatorRoute(self._requests) if coordinator is None else to_node(coordinator)

    def remove_group_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove],
        group_coordinator_id: int | None = None,
    ) -> dict[str, type[BrokerResponseError]]:
        """Remove members from a group; `NoError` or the class of the error by id.

        A removed member that still runs joins again.

        Args:
            group_id: the group.
            members: whom to remove. By instance id this needs Kafka 2.4.
            group_coordinator_id: the group's coordinator, if it is known already.

        Raises:
            KafkaError: no member was removed, as in `GroupAuthorizationFailedError`.
        """
        wanted = {_member_key(one.member_id, one.group_instance_id): one for one in members}
        if "" in wanted:
            raise ValueError("a member to remove needs a member_id or a group_instance_id")
        deadline = self._requests.deadline()
        try:
            return self._remove(group_id, wanted, group_coordinator_id, deadline)
        except UnsupportedVersionError:
            if any(one.group_instance_id is not None for one in wanted.values()):
                raise
        # Before Kafka 2.4 members leave one by one.
        removed: dict[str, type[BrokerResponseError]] = {}
        for key in wanted:
            removed |= self._remove_one(group_id, key, group_coordinator_id, deadline)
        return removed

    def _remove(
        self,
        group_id: str,
        members: dict[str, MemberToRemove],
        coordinator: int | None,
        deadline: Deadline,
    ) -> dict[str, type[BrokerResponseError]]:
        def results_of(response: LeaveGroupResponse) -> Iterable[tuple[str, Any]]:
            if response.error_code:
                raise for_code(response.error_code)(_name(group_id))
            return (
                (_member_key(one.member_id, one.group_instance_id), one) for one in response.members
            )

        return self._leave(
            group_id,
            members,
            lambda pending: LeaveGroupRequest(
                group_id=group_id,
                members=[
                    MemberIdentity(
                        member_id=one.member_id or "",
                        group_instance_id=one.group_instance_id,
                        reason=one.reason,
                    )
                    for one in pending
                ],
            ),
            results_of,
            coordinator,
            deadline,
        )

    def _remove_one(
        self, group_id: str, member_id: str, coordinator: int | None, deadline: Deadline
    ) -> dict[str, type[BrokerResponseError]]:
        return self._leave(
            group_id,
            {member_id: MemberToRemove(member_id)},
            lambda _pending: LeaveGroupRequest(group_id=group_id, member_id=member_id),
            lambda response: [(member_id, response)],
            coordinator,
            deadline,
        )

    def _leave(
        self,
        group_id: str,
        members: dict[str, MemberToRemove],
        make_request: Callable[[list[MemberToRemove]], Message],
        results_of: Callable[[Any], Iterable[tuple[str, Any]]],
        coordinator: int | None,
        deadline: Deadline,
    ) -> dict[str, type[BrokerResponseError]]:
        outcomes = self._requests.settle(
            Work(
                members,
                make_request,
                results_of,
                lambda member: f"member {member!r} of group {group_id!r}",
                to_coordinator(self._requests, group_id, coordinator),
                deadline,
            )
        )
        return {
            members[key].member_id or key: for_code(one.result.error_code)
            for key, one in outcomes.items()
        }

    # --- kafka-python 2's names --------------------------------------------------------------

    def list_consumer_groups(
        self, broker_ids: Iterable[int] | None = None
    ) -> list[tuple[str, str]]:
        """The id and the protocol type of each group: kafka-python 2's `list_groups`."""
        return [(one.group_id, one.protocol_type) for one in self.list_groups(broker_ids)]

    def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
    ) -> list[GroupInformation]:
        """Groups with their members: kafka-python 2's `describe_groups`.

        Raises:
            KafkaError: a group could not be described.
        """
        outcomes = self._describe_groups(
            group_ids, group_coordinator_id, include_authorized_operations
        )
        raise_first_error(outcomes)
        return [_information(_description(one.result)) for one in outcomes.values()]

    def delete_consumer_groups(
        self, group_ids: Iterable[str], group_coordinator_id: int | None = None
    ) -> list[tuple[str, type[KafkaError]]]:
        """Delete groups, and list `NoError` or the error: kafka-python 2's `delete_groups`."""
        return [
            (name, NoError if outcome.error is None else type(outcome.error))
            for name, outcome in self._delete_groups(group_ids, group_coordinator_id).items()
        ]


_KAFKA_PYTHON_NAMES: dict[type[KafkaError], str] = {
    GroupAuthorizationError: "GroupAuthorizationFailedError",
    GroupNotEmptyError: "NonEmptyGroupError",
}
"""Programs compare the names that `delete_groups` returns, so they are kafka-python's."""


def _error_name(error: KafkaError) -> str:
    return _KAFKA_PYTHON_NAMES.get(type(error), type(error).__name__)


def _name(group: str) -> str:
    return f"group {group!r}"


def _description(result: DescribedGroup) -> GroupDescription:
    group = GroupDescription.of(result)
    del group["error_code"], group["error_message"]
    group["authorized_operations"] = operation_names(result.authorized_operations)
    if result.protocol_type == _CONSUMER:
        for member in group.members:
            _read_member(member)
    return group


def _information(group: GroupDescription) -> GroupInformation:
    return GroupInformation(
        error_code=0,
        group=group.group_id,
        state=group.group_state,
        protocol_type=group.protocol_type,
        protocol=group.protocol_data,
        members=[
            MemberInformation(
                one.member_id,
                one.client_id,
                one.client_host,
                one.member_metadata,
                one.member_assignment,
            )
            for one in group.members
        ],
        authorized_operations=group.authorized_operations,
    )


def _member_key(member_id: str | None, group_instance_id: str | None) -> str:
    # The instance id first: brokers repeat it, but may fill in the member id.
    return group_instance_id or member_id or ""


def _read_member(member: dict[str, Any]) -> None:
    """Decode a member's subscription and assignment, if possible."""
    member["member_metadata"] = _readable(
        MemberSubscription, ConsumerProtocolSubscription, member["member_metadata"]
    )
    member["member_assignment"] = _readable(
        MemberAssignment, ConsumerProtocolAssignment, member["member_assignment"]
    )


def _readable(part: type[AnyPart], message: type[Message], blob: bytes) -> AnyPart | bytes:
    """The message after the version number; the bytes unchanged if decoding fails."""
    if len(blob) < _VERSION_BYTES:
        return blob
    version = min(int.from_bytes(blob[:_VERSION_BYTES]), message.stable.highest)
    try:
        # A newer member may have appended fields; they are ignored.
        return part.of(message.decode_from(blob, _VERSION_BYTES, version)[0])
    except ProtocolError:
        return blob
