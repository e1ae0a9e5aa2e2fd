"""The new leader of a partition in Produce and Fetch responses, after an error about the old one.

KIP-951: a client follows it without waiting for metadata.
"""

from pyclient.protocol.primitives import INT32, STRING
from pyclient.protocol.schema import Struct, field


class LeaderIdAndEpoch(Struct):
    """The partition's current leader, as far as the broker knows."""

    leader_id: int = field(INT32, default=-1)
    leader_epoch: int = field(INT32, default=-1)


class NodeEndpoint(Struct):
    """The address of a broker that `current_leader` names."""

    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable="0+", default=None)
