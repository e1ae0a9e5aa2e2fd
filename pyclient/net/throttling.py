"""Which side waits when a quota is exceeded: the broker or the client (KIP-219).

In old versions the broker delays the response, which says for how long it was delayed. In newer
ones, which start at another version per API, the broker responds at once, stops reading the
connection for that time, and expects the client to send nothing. Waiting after an old response
would wait twice.
"""

from collections.abc import Mapping
from typing import Final

# The first version in which the client waits, by API key. APIs that are not listed are newer: their
# clients wait in every version.
_CLIENT_WAITS_FROM: Final[Mapping[int, int]] = {
    0: 6,  # Produce
    1: 8,  # Fetch
    2: 3,  # ListOffsets
    3: 6,  # Metadata
    8: 4,  # OffsetCommit
    9: 4,  # OffsetFetch
    10: 2,  # FindCoordinator
    11: 3,  # JoinGroup
    12: 2,  # Heartbeat
    13: 2,  # LeaveGroup
    14: 2,  # SyncGroup
    15: 2,  # DescribeGroups
    16: 2,  # ListGroups
    18: 2,  # ApiVersions
    19: 3,  # CreateTopics
    20: 2,  # DeleteTopics
    21: 1,  # DeleteRecords
    22: 1,  # InitProducerId
    24: 1,  # AddPartitionsToTxn
    25: 1,  # AddOffsetsToTxn
    26: 1,  # EndTxn
    28: 1,  # TxnOffsetCommit
    29: 1,  # DescribeAcls
    30: 1,  # CreateAcls
    31: 1,  # DeleteAcls
    32: 2,  # DescribeConfigs
    33: 1,  # AlterConfigs
    34: 1,  # AlterReplicaLogDirs
    35: 1,  # DescribeLogDirs
    37: 1,  # CreatePartitions
    38: 1,  # CreateDelegationToken
    39: 1,  # RenewDelegationToken
    40: 1,  # ExpireDelegationToken
    41: 1,  # DescribeDelegationToken
    42: 1,  # DeleteGroups
}


def client_waits(api_key: int, version: int) -> bool:
    """Whether the client has to wait for a response's `throttle_time_ms`."""
    return version >= _CLIENT_WAITS_FROM.get(api_key, 0)
