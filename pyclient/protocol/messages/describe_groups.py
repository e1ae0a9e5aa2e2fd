"""DescribeGroups (API key 15): members and state of classic groups."""

from pyclient.protocol.primitives import BOOL, BYTES, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class DescribeGroupsRequest(Message, api_key=15, versions="0-6", flexible="5+"):
    """Describe classic groups."""

    groups: list[str] = field(array(STRING))
    include_authorized_operations: bool = field(BOOL, versions="3+")

    def version_floor(self) -> int:
        """3 for a request for the allowed operations."""
        return 3 if self.include_authorized_operations else super().version_floor()


class DescribedGroupMember(Struct):
    """A member, its subscription and its assignment."""

    member_id: str = field(STRING)
    group_instance_id: str | None = field(
        STRING, versions="4+", nullable="4+", default=None, ignorable=True
    )
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    member_metadata: bytes = field(BYTES)
    member_assignment: bytes = field(BYTES)


class DescribedGroup(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, versions="6+", nullable="6+", default=None)
    group_id: str = field(STRING)
    group_state: str = field(STRING)
    protocol_type: str = field(STRING)
    protocol_data: str = field(STRING)
    members: list[DescribedGroupMember] = field(array(DescribedGroupMember))
    authorized_operations: int = field(INT32, versions="3+", default=-(2**31))


class DescribeGroupsResponse(Message, api_key=15, versions="0-6", flexible="5+"):
    """The groups that were asked for."""

    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    groups: list[DescribedGroup] = field(array(DescribedGroup))
