"""ListGroups (API key 16): the groups a broker coordinates."""

from pyclient.protocol.primitives import INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class ListGroupsRequest(Message, api_key=16, versions="0-5", flexible="3+"):
    """List a broker's groups, by state and type if wanted."""

    states_filter: list[str] = field(array(STRING), versions="4+")
    types_filter: list[str] = field(array(STRING), versions="5+")

    def version_floor(self) -> int:
        """4 or 5 for a filter: an older broker would list everything."""
        if self.types_filter:
            return 5
        return 4 if self.states_filter else super().version_floor()


class ListedGroup(Struct):
    """A group, its state and type."""

    group_id: str = field(STRING)
    protocol_type: str = field(STRING)
    group_state: str = field(STRING, versions="4+", ignorable=True)
    group_type: str = field(STRING, versions="5+", ignorable=True)


class ListGroupsResponse(Message, api_key=16, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    error_code: int = field(INT16)
    groups: list[ListedGroup] = field(array(ListedGroup))
