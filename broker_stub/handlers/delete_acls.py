"""DeleteAcls (API key 31), versions 1-3.

Always fails with SECURITY_DISABLED, as Apache Kafka without an authorizer does.
"""

from broker_stub.handlers._acls import handle
from broker_stub.handlers._errors import message_of
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

__all__ = ["handle", "refuse"]


def refuse(request: DeleteAclsRequest, error: BrokerResponseError) -> DeleteAclsResponse:
    failed = DeleteAclsFilterResult(error_code=error.code, error_message=message_of(error))
    return DeleteAclsResponse(filter_results=[failed] * len(request.filters))
