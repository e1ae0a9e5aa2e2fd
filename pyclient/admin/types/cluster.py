"""Results about the cluster: brokers, controllers, disks, features, versions."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar, Final, NamedTuple

from pyclient.admin.types.result import AdminResult
from pyclient.protocol.registry import API_NAMES, ApiVersionRange


class BrokerDescription(AdminResult):
    """A broker and its address."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class ClusterDescription(AdminResult):
    """The cluster's id, controller and brokers.

    `cluster_authorized_operations` is None where the brokers do not tell it.
    """

    PARTS: ClassVar = {"brokers": BrokerDescription}

    cluster_id: str
    controller_id: int
    brokers: list[BrokerDescription]
    cluster_authorized_operations: list[str] | None


class QuorumReplica(AdminResult):
    """How far a controller has got in the metadata log."""

    replica_id: int
    replica_directory_id: str
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


class QuorumPartition(AdminResult):
    """The leader and the replicas of the metadata log."""

    PARTS: ClassVar = {"current_voters": QuorumReplica, "observers": QuorumReplica}

    partition_index: int
    leader_id: int
    leader_epoch: int
    high_watermark: int
    current_voters: list[QuorumReplica]
    observers: list[QuorumReplica]
    error: str | None


class QuorumTopic(AdminResult):
    """The metadata log."""

    PARTS: ClassVar = {"partitions": QuorumPartition}

    topic_name: str
    partitions: list[QuorumPartition]


class QuorumListener(AdminResult):
    """One address of a controller."""

    name: str
    host: str
    port: int


class QuorumNode(AdminResult):
    """A controller and its addresses."""

    PARTS: ClassVar = {"listeners": QuorumListener}

    node_id: int
    listeners: list[QuorumListener]


class QuorumDescription(AdminResult):
    """The cluster's controllers: the leader, and each one's progress."""

    PARTS: ClassVar = {"topics": QuorumTopic, "nodes": QuorumNode}

    topics: list[QuorumTopic]
    nodes: list[QuorumNode]


class LogDirPartition(AdminResult):
    """A replica in a log directory; a future one is on its way there from another."""

    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool


class LogDirTopic(AdminResult):
    """The replicas of one topic in a log directory."""

    PARTS: ClassVar = {"partitions": LogDirPartition}

    name: str
    partitions: list[LogDirPartition]


class LogDir(AdminResult):
    """A log directory; sizes are -1 where the broker does not tell them."""

    PARTS: ClassVar = {"topics": LogDirTopic}

    error_code: int
    log_dir: str
    topics: list[LogDirTopic]
    total_bytes: int
    usable_bytes: int


class BrokerLogDirs(AdminResult):
    """The log directories of one broker."""

    broker: int
    log_dirs: list[LogDir]


class UpdateFeatureType(IntEnum):
    """How a feature's level may change; an unsafe downgrade may lose metadata."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


# Each release, newest first, and the API version that came with it. 3.4 changed only an API
# between brokers.
_RELEASES: Final = (
    ((4, 3), "DescribeLogDirs", 5),
    ((4, 2), "ListOffsets", 11),
    ((4, 1), "Produce", 13),
    ((4, 0), "ListOffsets", 10),
    ((3, 9), "Fetch", 17),
    ((3, 8), "Produce", 11),
    ((3, 7), "Fetch", 16),
    ((3, 6), "AddPartitionsToTxn", 4),
    ((3, 5), "Fetch", 15),
    ((3, 3), "DescribeAcls", 3),
    ((3, 2), "JoinGroup", 9),
    ((3, 1), "Fetch", 13),
    ((3, 0), "ListOffsets", 7),
    ((2, 8), "Produce", 9),
    ((2, 7), "Fetch", 12),
    ((2, 6), "DescribeClientQuotas", 0),
    ((2, 5), "DescribeAcls", 2),
    ((2, 4), "Produce", 8),
    ((2, 3), "Fetch", 11),
    ((2, 2), "ListOffsets", 5),
    ((2, 1), "Fetch", 10),
)
_KEYS: Final = {name: key for key, name in API_NAMES.items()}


class BrokerVersionData(NamedTuple):
    """What a broker serves.

    Attributes:
        broker_version: the newest release that its API versions fit, as in `(4, 3)`. Brokers do
            not tell their release.
        api_versions: the lowest and the highest version of each API, by API key.
    """

    broker_version: tuple[int, ...]
    api_versions: Mapping[int, ApiVersionRange]

    def api_version(self, request: Any) -> int:
        """The highest version of a request (or its class) that both sides know.

        Raises:
            UnsupportedVersionError: there is none; names the request and the versions.
        """
        from pyclient.protocol.registry import choose_version

        message = request() if isinstance(request, type) else request
        return choose_version(message, self.api_versions.get(message.api_key))


def release_of(api_versions: Mapping[int, ApiVersionRange]) -> tuple[int, ...]:
    """The newest release that API versions fit; 2.0 where they fit none that is supported."""
    for release, name, version in _RELEASES:
        served = api_versions.get(_KEYS[name])
        if served is not None and served.lowest <= version <= served.highest:
            return release
    return (2, 0)
