"""JoinGroup (API key 11), versions 0-9.

Parked until the generation is complete. From version 4 on a dynamic member without an id gets
MEMBER_ID_REQUIRED and an id to come back with (KIP-394); static members are exempt. From
version 9 on a static leader that returns is told to skip its assignment (KIP-814).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.coordinator.group_state import JoinTerms
from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import KafkaError
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: JoinGroupRequest, context: RequestContext
) -> JoinGroupResponse | Parked[JoinGroupResponse]:
    """Let a member in, once everybody is there."""
    terms = JoinTerms(
        client_id=context.client_id or "",
        client_host=f"/{context.connection.client_host}",
        member_id_required=context.api_version >= 4,
        can_skip_assignment=context.api_version >= 9,
    )
    return node.coordinator.join(request, terms)


def refuse(request: JoinGroupRequest, error: KafkaError) -> JoinGroupResponse:
    """No generation, no protocol: only the error."""
    return JoinGroupResponse(error_code=code_of(error), member_id=request.member_id)
