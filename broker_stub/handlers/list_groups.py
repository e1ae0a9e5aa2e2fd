"""ListGroups (API key 16), versions 0-5.

All groups, also those that only have offsets; all are classic ones. Filters by state (version 4
and later) and type (5 and later) ignore case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_stub.metadata.image import CONSUMER_OFFSETS
from broker_stub.request import RequestContext
from pyclient.error_codes import code_of
from pyclient.errors import KafkaError
from pyclient.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node

_CLASSIC: Final = "classic"


def handle(node: Node, request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    states = {state.lower() for state in request.states_filter}
    types = {one.lower() for one in request.types_filter}
    if node.image.topic(CONSUMER_OFFSETS) is None or (types and _CLASSIC not in types):
        return ListGroupsResponse()
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=_CLASSIC,
            )
            for group in node.coordinator.groups()
            if not states or group.state.value.lower() in states
        ]
    )


def refuse(_request: ListGroupsRequest, error: KafkaError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=code_of(error))
