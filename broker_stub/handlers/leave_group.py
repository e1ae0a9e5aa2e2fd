"""LeaveGroup (API key 13), versions 0-5.

Up to version 2 one member leaves, and its error is the response's. From version 3 on each member of
a list has its own error, and a static member may be named by its instance id alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.request import RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import KafkaError, UnknownMemberIdError
from pyclient.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(node: Node, request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    """Remove members without waiting for their sessions to expire."""
    if context.api_version < 3:
        (error,) = node.coordinator.group(request.group_id).leave([(request.member_id, None)])
        return LeaveGroupResponse(error_code=_code(error))
    try:
        group = node.coordinator.group(request.group_id)
    except UnknownMemberIdError as missing:
        errors: list[KafkaError | None] = [missing] * len(request.members)
    else:
        errors = group.leave([(one.member_id, one.group_instance_id) for one in request.members])
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=_code(error),
            )
            for member, error in zip(request.members, errors, strict=True)
        ]
    )


def _code(error: KafkaError | None) -> int:
    return 0 if error is None else code_of(error)


def refuse(_request: LeaveGroupRequest, error: KafkaError) -> LeaveGroupResponse:
    """Fail the request as a whole; no member left."""
    return LeaveGroupResponse(error_code=code_of(error))
