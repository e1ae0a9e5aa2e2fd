"""FindCoordinator (API key 10): which broker looks after a group or a transactional id.

Up to version 3 one `key`, answered in the response itself; from 4 on many `coordinator_keys`,
answered in `coordinators`.
"""

from pyclient.protocol.primitives import INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class FindCoordinatorRequest(Message, api_key=10, versions="0-6", flexible="3+"):
    """Ask for the coordinators of groups or transactional ids."""

    key: str = field(STRING, versions="0-3")
    key_type: int = field(INT8, versions="1+")  # 0 group, 1 transactional id, 2 share group
    coordinator_keys: list[str] = field(array(STRING), versions="4+")

    def version_cap(self, transaction_version: int = 0) -> int:
        """3 for a request about a single `key`."""
        return 3 if self.key else super().version_cap(transaction_version)

    def version_floor(self) -> int:
        """4 for a request about several `coordinator_keys`; 1 about a transactional id."""
        if self.coordinator_keys:
            return 4
        return 1 if self.key_type else super().version_floor()


class Coordinator(Struct):
    key: str = field(STRING)
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


class FindCoordinatorResponse(Message, api_key=10, versions="0-6", flexible="3+"):
    """Where the coordinators are."""

    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    error_code: int = field(INT16, versions="0-3")
    error_message: str | None = field(STRING, versions="1-3", nullable="1-3", ignorable=True)
    node_id: int = field(INT32, versions="0-3")
    host: str = field(STRING, versions="0-3")
    port: int = field(INT32, versions="0-3")
    coordinators: list[Coordinator] = field(array(Coordinator), versions="4+")
