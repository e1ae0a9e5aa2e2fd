"""DeleteAcls (API key 31), versions 1-3.

Always fails with SECURITY_DISABLED, as Apache Kafka without an authorizer does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from broker_stub.handlers._errors import message_of
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, SecurityDisabledError
from pyclient.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(node: Node, request: DeleteAclsRequest, context: RequestContext) -> NoReturn:  # noqa: ARG001
    """Fail: there is no authorizer."""
    raise SecurityDisabledError("No Authorizer is configured on the broker")


def refuse(
    request: DeleteAclsRequest,
    error: BrokerResponseError,
) -> DeleteAclsResponse:
    failed = DeleteAclsFilterResult(error_code=error.code, error_message=message_of(error))
    return DeleteAclsResponse(filter_results=[failed] * len(request.filters))
