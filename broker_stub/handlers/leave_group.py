"""LeaveGroup (API key 13), versions 0-5.

Up to version 2 one member leaves, and the error is the response's own; from version 3 on each
member of a list has its own error, and static members may be named by instance id alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.request import RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import KafkaError
from pyclient.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(node: Node, request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    """Remove members at once, without waiting for their sessions to end."""
    if context.api_version < 3:
        node.coordinator.group(request.group_id).leave(request.member_id, None)
        return LeaveGroupResponse()
    node.coordinator.check_group_id(request.group_id)
    return LeaveGroupResponse(
        members=[_leave(node, request.group_id, member) for member in request.members]
    )


def _leave(node: Node, group_id: str, member: MemberIdentity) -> MemberResponse:
    response = MemberResponse(
        member_id=member.member_id, group_instance_id=member.group_instance_id
    )
    try:
        node.coordinator.group(group_id).leave(member.member_id, member.group_instance_id)
    except KafkaError as error:
        response.error_code = code_of(error)
    return response


def refuse(_request: LeaveGroupRequest, error: KafkaError) -> LeaveGroupResponse:
    """Nobody left."""
    return LeaveGroupResponse(error_code=code_of(error))
