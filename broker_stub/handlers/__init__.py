"""The APIs that this broker serves: one file each, named as in `pyclient.protocol.messages`.

A handler decodes, calls and encodes: `handle(node, request, context)` returns the response, or a
`Parked` one; `refuse(request, error)` returns the response that fails the whole request. APIs that
are not in `SERVED` are neither advertised nor served; `SKIPPED.md` lists them. Handlers run on the
serving thread. Shared code:

- `_acls`: the answer to every request about ACLs
- `_config_alterations`: a result per resource, for AlterConfigs and IncrementalAlterConfigs
- `_errors`: the message beside an error code
- `_names`: topics that a request names twice, or that do not exist
- `_operations`: the authorized operations of topics, groups and the cluster
- `_partitions`: a result per partition, nested by topic
- `_transactions`: the errors that old clients of transactions know
"""

from collections.abc import Mapping
from typing import Final

from pyclient.protocol.registry import ApiVersionRange

SERVED: Final[Mapping[int, ApiVersionRange]] = {
    0: ApiVersionRange(3, 13),  # Produce
    1: ApiVersionRange(4, 17),  # Fetch
    2: ApiVersionRange(1, 10),  # ListOffsets
    3: ApiVersionRange(0, 12),  # Metadata
    8: ApiVersionRange(2, 10),  # OffsetCommit
    9: ApiVersionRange(1, 10),  # OffsetFetch
    10: ApiVersionRange(0, 6),  # FindCoordinator
    11: ApiVersionRange(0, 9),  # JoinGroup
    12: ApiVersionRange(0, 4),  # Heartbeat
    13: ApiVersionRange(0, 5),  # LeaveGroup
    14: ApiVersionRange(0, 5),  # SyncGroup
    15: ApiVersionRange(0, 6),  # DescribeGroups
    16: ApiVersionRange(0, 5),  # ListGroups
    18: ApiVersionRange(0, 4),  # ApiVersions
    19: ApiVersionRange(2, 7),  # CreateTopics
    20: ApiVersionRange(1, 6),  # DeleteTopics
    21: ApiVersionRange(0, 2),  # DeleteRecords
    22: ApiVersionRange(0, 5),  # InitProducerId
    23: ApiVersionRange(2, 4),  # OffsetForLeaderEpoch
    24: ApiVersionRange(0, 5),  # AddPartitionsToTxn
    25: ApiVersionRange(0, 4),  # AddOffsetsToTxn
    26: ApiVersionRange(0, 5),  # EndTxn
    27: ApiVersionRange(1, 2),  # WriteTxnMarkers
    28: ApiVersionRange(0, 5),  # TxnOffsetCommit
    29: ApiVersionRange(1, 3),  # DescribeAcls
    30: ApiVersionRange(1, 3),  # CreateAcls
    31: ApiVersionRange(1, 3),  # DeleteAcls
    32: ApiVersionRange(1, 4),  # DescribeConfigs
    33: ApiVersionRange(0, 2),  # AlterConfigs
    34: ApiVersionRange(1, 2),  # AlterReplicaLogDirs
    35: ApiVersionRange(1, 5),  # DescribeLogDirs
    37: ApiVersionRange(0, 3),  # CreatePartitions
    42: ApiVersionRange(0, 2),  # DeleteGroups
    43: ApiVersionRange(0, 2),  # ElectLeaders
    44: ApiVersionRange(0, 1),  # IncrementalAlterConfigs
    45: ApiVersionRange(0, 1),  # AlterPartitionReassignments
    46: ApiVersionRange(0, 0),  # ListPartitionReassignments
    47: ApiVersionRange(0, 0),  # OffsetDelete
    55: ApiVersionRange(0, 2),  # DescribeQuorum
    57: ApiVersionRange(0, 2),  # UpdateFeatures
    60: ApiVersionRange(0, 2),  # DescribeCluster
    61: ApiVersionRange(0, 0),  # DescribeProducers
    65: ApiVersionRange(0, 0),  # DescribeTransactions
    66: ApiVersionRange(0, 2),  # ListTransactions
    74: ApiVersionRange(0, 1),  # ListConfigResources
    75: ApiVersionRange(0, 0),  # DescribeTopicPartitions
}
