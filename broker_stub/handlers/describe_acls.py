"""DescribeAcls (API key 29), versions 1-3.

Always fails with SECURITY_DISABLED, as Apache Kafka without an authorizer does.
"""

from broker_stub.handlers._acls import handle
from broker_stub.handlers._errors import message_of
from pyclient.error_codes import BrokerResponseError
from pyclient.protocol.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
)

__all__ = ["handle", "refuse"]


def refuse(request: DescribeAclsRequest, error: BrokerResponseError) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error.code, error_message=message_of(error))
