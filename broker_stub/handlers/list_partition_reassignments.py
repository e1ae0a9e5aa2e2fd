"""ListPartitionReassignments (API key 46), version 0.

No partition ever moves here, and those that do not exist are left out: the list is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.handlers._errors import message_of
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)


def refuse(
    request: ListPartitionReassignmentsRequest, error: BrokerResponseError
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=error.code, error_message=message_of(error)
    )
