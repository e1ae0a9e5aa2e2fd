"""SyncGroup (API key 14), versions 0-5. Parked until the leader has sent the assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.request import Parked, RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import KafkaError
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: SyncGroupRequest, _context: RequestContext
) -> SyncGroupResponse | Parked[SyncGroupResponse]:
    """Give a member its assignment."""
    return node.coordinator.group(request.group_id).sync(request)


def refuse(_request: SyncGroupRequest, error: KafkaError) -> SyncGroupResponse:
    """Fail, without an assignment."""
    return SyncGroupResponse(error_code=code_of(error))
