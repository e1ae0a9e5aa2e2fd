"""Fetch (API key 1): record batches on their way out of partitions, to consumers and followers.

From version 13 on a topic is named by its id, in requests, forgotten topics and responses
alike. Sessions (7+) let a client send and get only what changed. Responses hold whole batches:
the first may start before the offset asked for, and may be larger than any limit in the
request.
"""

from pyclient.protocol.messages.current_leader import LeaderIdAndEpoch, NodeEndpoint
from pyclient.protocol.primitives import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    ZERO_UUID,
    Records,
    Uuid,
)
from pyclient.protocol.schema import Message, Struct, array, field, struct


class ReplicaState(Struct):
    """The follower that fetches; a consumer leaves it at -1."""

    replica_id: int = field(INT32, default=-1)
    replica_epoch: int = field(INT64, default=-1)


class FetchPartition(Struct):
    """Where to go on reading in one partition."""

    partition: int = field(INT32)
    current_leader_epoch: int = field(INT32, versions="9+", default=-1, ignorable=True)
    fetch_offset: int = field(INT64)
    last_fetched_epoch: int = field(INT32, versions="12+", default=-1)
    log_start_offset: int = field(INT64, versions="5+", default=-1, ignorable=True)
    partition_max_bytes: int = field(INT32)
    replica_directory_id: Uuid = field(UUID, versions="17+", tag=0, ignorable=True)
    high_watermark: int = field(INT64, versions="18+", default=2**63 - 1, tag=1, ignorable=True)


class FetchTopic(Struct):
    topic: str = field(STRING, versions="0-12", ignorable=True)
    topic_id: Uuid = field(UUID, versions="13+", ignorable=True)
    partitions: list[FetchPartition] = field(array(FetchPartition))


class ForgottenTopic(Struct):
    """Partitions to drop from the fetch session."""

    topic: str = field(STRING, versions="7-12", ignorable=True)
    topic_id: Uuid = field(UUID, versions="13+", ignorable=True)
    partitions: list[int] = field(array(INT32))


class FetchRequest(Message, api_key=1, versions="4-18", flexible="12+"):
    """Read batches, and wait for them if there are none yet."""

    cluster_id: str | None = field(
        STRING, versions="12+", nullable="12+", default=None, tag=0, ignorable=True
    )
    replica_id: int = field(INT32, versions="0-14", default=-1)
    replica_state: ReplicaState = field(struct(ReplicaState), versions="15+", tag=1)
    max_wait_ms: int = field(INT32)
    min_bytes: int = field(INT32)
    max_bytes: int = field(INT32, default=2**31 - 1)
    isolation_level: int = field(INT8)  # 0 read uncommitted, 1 read committed
    session_id: int = field(INT32, versions="7+", ignorable=True)
    # 0 opens a session, -1 closes it or has none
    session_epoch: int = field(INT32, versions="7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = field(array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(array(ForgottenTopic), versions="7+")
    rack_id: str = field(STRING, versions="11+", ignorable=True)

    def version_cap(self, transaction_version: int = 0) -> int:
        """12 while the id of a topic, or of a forgotten one, is missing."""
        ids = [topic.topic_id for topic in self.topics]
        ids += [topic.topic_id for topic in self.forgotten_topics_data]
        return 12 if ZERO_UUID in ids else super().version_cap(transaction_version)


class EpochEndOffset(Struct):
    """Where the follower's log parts from the leader's."""

    epoch: int = field(INT32, default=-1)
    end_offset: int = field(INT64, default=-1)


class SnapshotId(Struct):
    """The snapshot to load, where the log no longer reaches back far enough."""

    end_offset: int = field(INT64, default=-1)
    epoch: int = field(INT32, default=-1)


class AbortedTransaction(Struct):
    """An aborted transaction among the records, for the reader to filter out."""

    producer_id: int = field(INT64)
    first_offset: int = field(INT64)


class PartitionData(Struct):
    """One partition's batches and offsets."""

    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    high_watermark: int = field(INT64)
    last_stable_offset: int = field(INT64, default=-1)
    log_start_offset: int = field(INT64, versions="5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field(struct(EpochEndOffset), versions="12+", tag=0)
    current_leader: LeaderIdAndEpoch = field(struct(LeaderIdAndEpoch), versions="12+", tag=1)
    snapshot_id: SnapshotId = field(struct(SnapshotId), versions="12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field(
        array(AbortedTransaction), nullable="0+"
    )
    preferred_read_replica: int = field(INT32, versions="11+", default=-1)
    records: Records | None = field(RECORDS, nullable="0+")


class FetchableTopicResponse(Struct):
    topic: str = field(STRING, versions="0-12", ignorable=True)
    topic_id: Uuid = field(UUID, versions="13+", ignorable=True)
    partitions: list[PartitionData] = field(array(PartitionData))


class FetchResponse(Message, api_key=1, versions="4-18", flexible="12+"):
    """The batches that were there."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, versions="7+", ignorable=True)
    session_id: int = field(INT32, versions="7+")
    responses: list[FetchableTopicResponse] = field(array(FetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), versions="16+", tag=0)
