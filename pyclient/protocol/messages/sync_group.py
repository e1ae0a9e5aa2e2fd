"""SyncGroup (API key 14): the leader hands in the assignment, every member gets its share."""

from pyclient.protocol.primitives import BYTES, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class SyncGroupRequestAssignment(Struct):
    """What one member is to read."""

    member_id: str = field(STRING)
    assignment: bytes = field(BYTES)


class SyncGroupRequest(Message, api_key=14, versions="0-5", flexible="4+"):
    """Hand in the assignment (the leader), or ask for one's own (everybody)."""

    group_id: str = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, versions="3+", nullable="3+", default=None)
    protocol_type: str | None = field(
        STRING, versions="5+", nullable="5+", default=None, ignorable=True
    )
    protocol_name: str | None = field(
        STRING, versions="5+", nullable="5+", default=None, ignorable=True
    )
    assignments: list[SyncGroupRequestAssignment] = field(array(SyncGroupRequestAssignment))


class SyncGroupResponse(Message, api_key=14, versions="0-5", flexible="4+"):
    """What the asking member is to read."""

    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    error_code: int = field(INT16)
    protocol_type: str | None = field(
        STRING, versions="5+", nullable="5+", default=None, ignorable=True
    )
    protocol_name: str | None = field(
        STRING, versions="5+", nullable="5+", default=None, ignorable=True
    )
    assignment: bytes = field(BYTES)
