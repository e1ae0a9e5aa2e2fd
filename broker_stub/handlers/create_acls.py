"""CreateAcls (API key 30), versions 1-3.

Always fails with SECURITY_DISABLED, as Apache Kafka without an authorizer does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from broker_stub.handlers._errors import message_of
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, SecurityDisabledError
from pyclient.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(node: Node, request: CreateAclsRequest, context: RequestContext) -> NoReturn:  # noqa: ARG001
    """Fail: there is no authorizer."""
    raise SecurityDisabledError("No Authorizer is configured on the broker")


def refuse(
    request: CreateAclsRequest,
    error: BrokerResponseError,
) -> CreateAclsResponse:
    failed = AclCreationResult(error_code=error.code, error_message=message_of(error))
    return CreateAclsResponse(results=[failed] * len(request.creations))
