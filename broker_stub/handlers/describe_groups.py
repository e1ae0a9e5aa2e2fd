"""DescribeGroups (API key 15), versions 0-6.

The members with their assignments and, in a stable group, their subscriptions. A group that does
not exist is `Dead`; from version 6 on with GROUP_ID_NOT_FOUND (KIP-1043). The empty group id is
allowed, as in Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.coordinator.groups.classic_group import ClassicGroup
from broker_stub.coordinator.groups.group_state import GroupState
from broker_stub.handlers._errors import message_of
from broker_stub.handlers._operations import GROUP_OPERATIONS
from broker_stub.request import RequestContext
from pyclient.error_codes import GroupIdNotFoundError, code_of
from pyclient.errors import KafkaError
from pyclient.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_DEAD: Final = GroupState.DEAD.value
_NOT_FOUND_FROM: Final = 6


def handle(
    node: Node, request: DescribeGroupsRequest, context: RequestContext
) -> DescribeGroupsResponse:
    def describe(group_id: str) -> DescribedGroup:
        try:
            return _described(node.coordinator.find(group_id))
        except GroupIdNotFoundError as error:
            if context.api_version < _NOT_FOUND_FROM:
                return DescribedGroup(group_id=group_id, group_state=_DEAD)
            missing = _failed(group_id, error)
            missing.group_state = _DEAD
            missing.error_message = message_of(error)
            return missing

    groups = [describe(group_id) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)


def refuse(request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[_failed(group_id, error) for group_id in request.groups])


def _described(group: ClassicGroup) -> DescribedGroup:
    # Until the group is stable, the assignor may still change.
    protocol_name = group.protocol_name if group.state is GroupState.STABLE else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol_name or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol_name),
                member_assignment=member.assignment,
            )
            for member in group.roster
        ],
    )


def _failed(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(error_code=code_of(error), group_id=group_id)
