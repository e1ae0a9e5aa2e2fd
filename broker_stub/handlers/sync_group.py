"""SyncGroup (API key 14), versions 0-5.

Parked until the leader has sent the assignment. From version 5 on a member must name the protocol
type and the assignor that it joined with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import InconsistentGroupProtocolError, KafkaError
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from broker_stub.node import Node

_NAMES_PROTOCOL_FROM: Final = 5


def handle(
    node: Node, request: SyncGroupRequest, context: RequestContext
) -> SyncGroupResponse | Parked[SyncGroupResponse]:
    """Give a member its assignment."""
    named = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= _NAMES_PROTOCOL_FROM and not named:
        raise InconsistentGroupProtocolError("a sync needs a protocol type and a protocol name")
    return node.coordinator.group(request.group_id).sync(request)


def refuse(_request: SyncGroupRequest, error: KafkaError) -> SyncGroupResponse:
    """Fail, without an assignment."""
    return SyncGroupResponse(error_code=code_of(error))
