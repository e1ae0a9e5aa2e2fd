"""LeaveGroup (API key 13): members leave a classic group.

Up to version 2 one member leaves, named by `member_id`, and the response lists no members. From 3
on `members` may name many, also by instance id alone, and each gets an answer of its own. A
request that names one member in both ways can be sent in any version.
"""

from pyclient.protocol.primitives import INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class MemberIdentity(Struct):
    """A member that leaves, by member id or instance id."""

    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, nullable="0+", default=None)
    reason: str | None = field(STRING, versions="5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Message, api_key=13, versions="0-5", flexible="4+"):
    """Leave a group, or make members leave it."""

    group_id: str = field(STRING)
    member_id: str = field(STRING, versions="0-2", ignorable=True)
    members: list[MemberIdentity] = field(array(MemberIdentity), versions="3+", ignorable=True)

    def version_cap(self, transaction_version: int = 0) -> int:
        """2 for a request that has a `member_id` only."""
        by_id = self.member_id and not self.members
        return 2 if by_id else super().version_cap(transaction_version)

    def version_floor(self) -> int:
        """3 for a request that has `members` only."""
        return 3 if self.members and not self.member_id else super().version_floor()


class MemberResponse(Struct):
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, nullable="0+")
    error_code: int = field(INT16)


class LeaveGroupResponse(Message, api_key=13, versions="0-5", flexible="4+"):
    """The outcome for each member that was to leave."""

    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    error_code: int = field(INT16)
    members: list[MemberResponse] = field(array(MemberResponse), versions="3+")
