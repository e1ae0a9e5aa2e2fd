"""The APIs this broker serves: one file each, named as in `pyclient.protocol.messages`.

A handler module has two functions: `handle(node, request, context)` gives the response, or a
`Parked` one; `refuse(request, error)` gives the response that fails the request as a whole.
What is not in the table is not advertised and not served; `SKIPPED.md` says what and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyclient.protocol.registry import ApiVersionRange

SERVED: Final[Mapping[int, ApiVersionRange]] = {
    0: ApiVersionRange(3, 13),  # Produce
    1: ApiVersionRange(4, 17),  # Fetch
    2: ApiVersionRange(1, 10),  # ListOffsets
    3: ApiVersionRange(0, 12),  # Metadata
    8: ApiVersionRange(2, 9),  # OffsetCommit
    9: ApiVersionRange(1, 9),  # OffsetFetch
    10: ApiVersionRange(0, 6),  # FindCoordinator
    11: ApiVersionRange(0, 9),  # JoinGroup
    12: ApiVersionRange(0, 4),  # Heartbeat
    13: ApiVersionRange(0, 5),  # LeaveGroup
    14: ApiVersionRange(0, 5),  # SyncGroup
    18: ApiVersionRange(0, 4),  # ApiVersions
    19: ApiVersionRange(2, 7),  # CreateTopics
    20: ApiVersionRange(1, 6),  # DeleteTopics
    22: ApiVersionRange(0, 5),  # InitProducerId
    32: ApiVersionRange(1, 4),  # DescribeConfigs
    60: ApiVersionRange(0, 2),  # DescribeCluster
}
