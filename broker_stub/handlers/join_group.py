"""JoinGroup (API key 11), versions 0-9.

Parked until all members have joined. From version 4 on, a dynamic member without an id gets
MEMBER_ID_REQUIRED and an id to join with (KIP-394). From version 9 on, a static leader that was
restarted is told to skip the assignment (KIP-814).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.coordinator.groups.group_state import JoinTerms
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import GroupMaxSizeReachedError, KafkaError
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: JoinGroupRequest, context: RequestContext
) -> JoinGroupResponse | Parked[JoinGroupResponse]:
    """Join a member to its group."""
    terms = JoinTerms(
        client_id=context.client_id or "",
        client_host=f"/{context.connection.client_host}",
        member_id_required=context.api_version >= 4,
        can_skip_assignment=context.api_version >= 9,
    )
    return node.coordinator.join(request, terms)


def refuse(request: JoinGroupRequest, error: KafkaError) -> JoinGroupResponse:
    """Fail, without a generation and a protocol."""
    # A member that has no room in the group loses its id.
    member_id = "" if isinstance(error, GroupMaxSizeReachedError) else request.member_id
    return JoinGroupResponse(error_code=code_of(error), member_id=member_id)
