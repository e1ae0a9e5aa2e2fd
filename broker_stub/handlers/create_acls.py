"""CreateAcls (API key 30), versions 1-3.

Always fails with SECURITY_DISABLED, as Apache Kafka without an authorizer does.
"""

from broker_stub.handlers._acls import handle
from broker_stub.handlers._errors import message_of
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

__all__ = ["handle", "refuse"]


def refuse(request: CreateAclsRequest, error: BrokerResponseError) -> CreateAclsResponse:
    failed = AclCreationResult(error_code=error.code, error_message=message_of(error))
    return CreateAclsResponse(results=[failed] * len(request.creations))
