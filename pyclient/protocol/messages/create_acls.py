"""CreateAcls (API key 30): grant or deny access."""

from pyclient.protocol.primitives import INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class AclCreation(Struct):
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    resource_pattern_type: int = field(INT8, default=3)  # 3 literal, 4 prefixed
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


class CreateAclsRequest(Message, api_key=30, versions="1-3", flexible="2+"):
    """Create access control entries."""

    creations: list[AclCreation] = field(array(AclCreation))


class AclCreationResult(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


class CreateAclsResponse(Message, api_key=30, versions="1-3", flexible="2+"):
    """Which entries were made, in the order of the request."""

    throttle_time_ms: int = field(INT32)
    results: list[AclCreationResult] = field(array(AclCreationResult))
