"""JoinGroup (API key 11): a member enters a classic group, and a leader is chosen.

From version 4 on, a member that joins with an empty id gets MEMBER_ID_REQUIRED and an id to
join again with; static members (`group_instance_id`) skip that round.
"""

from pyclient.protocol.primitives import BOOL, BYTES, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class JoinGroupRequestProtocol(Struct):
    """An assignor that the member supports, with its subscription."""

    name: str = field(STRING)
    metadata: bytes = field(BYTES)


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible="6+"):
    """Join a classic group, or join it again for a rebalance."""

    group_id: str = field(STRING)
    session_timeout_ms: int = field(INT32)
    rebalance_timeout_ms: int = field(INT32, versions="1+", default=-1, ignorable=True)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, versions="5+", nullable="5+", default=None)
    protocol_type: str = field(STRING)
    protocols: list[JoinGroupRequestProtocol] = field(array(JoinGroupRequestProtocol))
    reason: str | None = field(STRING, versions="8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    """A member and its subscription, for the leader to assign by."""

    member_id: str = field(STRING)
    group_instance_id: str | None = field(
        STRING, versions="5+", nullable="5+", default=None, ignorable=True
    )
    metadata: bytes = field(BYTES)


class JoinGroupResponse(Message, api_key=11, versions="0-9", flexible="6+"):
    """The generation that came together; only its leader sees the members."""

    throttle_time_ms: int = field(INT32, versions="2+", ignorable=True)
    error_code: int = field(INT16)
    generation_id: int = field(INT32, default=-1)
    protocol_type: str | None = field(
        STRING, versions="7+", nullable="7+", default=None, ignorable=True
    )
    protocol_name: str | None = field(STRING, nullable="7+")
    leader: str = field(STRING)
    skip_assignment: bool = field(BOOL, versions="9+")
    member_id: str = field(STRING)
    members: list[JoinGroupResponseMember] = field(array(JoinGroupResponseMember))
