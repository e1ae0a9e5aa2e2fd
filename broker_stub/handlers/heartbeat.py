"""Heartbeat (API key 12), versions 0-4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.request import RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import KafkaError
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(node: Node, request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    """Renew a member's session. REBALANCE_IN_PROGRESS tells it to rejoin."""
    group = node.coordinator.group(request.group_id)
    group.heartbeat(request.member_id, request.group_instance_id, request.generation_id)
    return HeartbeatResponse()


def refuse(_request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=code_of(error))
