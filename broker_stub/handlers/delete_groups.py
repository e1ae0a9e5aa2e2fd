"""DeleteGroups (API key 42), versions 0-2.

Deletes groups without members, and their offsets. A group with members is NON_EMPTY_GROUP, one
that does not exist GROUP_ID_NOT_FOUND. The empty group id is allowed, and a group that is named
several times has one result, as in Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, code_of
from pyclient.errors import KafkaError
from pyclient.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(
    node: Node, request: DeleteGroupsRequest, context: RequestContext
) -> DeleteGroupsResponse:
    def delete(group_id: str) -> DeletableGroupResult:
        try:
            node.coordinator.delete(group_id)
        except BrokerResponseError as error:
            return _failed(group_id, error)
        return DeletableGroupResult(group_id=group_id)

    return DeleteGroupsResponse(
        results=[delete(group_id) for group_id in dict.fromkeys(request.groups_names)]
    )


def refuse(request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[_failed(group_id, error) for group_id in request.groups_names]
    )


def _failed(group_id: str, error: KafkaError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=code_of(error))
