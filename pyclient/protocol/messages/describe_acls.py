"""DescribeAcls (API key 29): the access control entries that match a filter."""

from pyclient.protocol.primitives import INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class DescribeAclsRequest(Message, api_key=29, versions="1-3", flexible="2+"):
    """List the entries that match one filter."""

    resource_type_filter: int = field(INT8)
    resource_name_filter: str | None = field(STRING, nullable="0+")
    pattern_type_filter: int = field(INT8, default=3)  # 1 any, 2 match, 3 literal, 4 prefixed
    principal_filter: str | None = field(STRING, nullable="0+")
    host_filter: str | None = field(STRING, nullable="0+")
    operation: int = field(INT8)
    permission_type: int = field(INT8)


class AclDescription(Struct):
    """Who may, or may not, do what."""

    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


class DescribeAclsResource(Struct):
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    pattern_type: int = field(INT8, default=3)
    acls: list[AclDescription] = field(array(AclDescription))


class DescribeAclsResponse(Message, api_key=29, versions="1-3", flexible="2+"):
    """The entries that match."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    resources: list[DescribeAclsResource] = field(array(DescribeAclsResource))
