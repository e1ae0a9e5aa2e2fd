"""Results about topics, partitions and their replicas."""

from typing import ClassVar

from pyclient.admin.types.configs import ConfigEntry
from pyclient.admin.types.result import AdminResult


class CreatedTopic(AdminResult):
    """A topic that was created, or why it was not."""

    name: str
    topic_id: str
    error_code: int
    error_message: str | None
    num_partitions: int
    replication_factor: int
    configs: dict[str, ConfigEntry]


class CreatedTopics(AdminResult):
    """The outcome for each topic that was to be created."""

    topics: list[CreatedTopic]


class DeletedTopic(AdminResult):
    """A topic that was deleted, or why it was not."""

    name: str | None
    topic_id: str
    error_code: int
    error_message: str | None


class DeletedTopics(AdminResult):
    """The outcome for each topic that was to be deleted."""

    topics: list[DeletedTopic]


class PartitionDescription(AdminResult):
    """A partition's leader and replicas; `leader_id` is -1 while it has no leader."""

    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]


class TopicDescription(AdminResult):
    """A topic and its partitions, or why it can't be described.

    `topic_authorized_operations` is None unless it was asked for.
    """

    PARTS: ClassVar = {"partitions": PartitionDescription}

    error_code: int
    name: str | None
    topic_id: str
    is_internal: bool
    partitions: list[PartitionDescription]
    topic_authorized_operations: list[str] | None


class TopicPartitionsCursor(AdminResult):
    """Where the next page of a description starts."""

    topic_name: str
    partition_index: int


class EligiblePartitionDescription(PartitionDescription):
    """A partition, with the replicas that may lead it though they are not in sync."""

    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None


class PagedTopicDescription(TopicDescription):
    """A topic and the partitions of it on one page."""

    PARTS: ClassVar = {"partitions": EligiblePartitionDescription}

    partitions: list[EligiblePartitionDescription]  # type: ignore[assignment]


class TopicPartitionsPage(AdminResult):
    """A page of topics and partitions; `next_cursor` is None on the last one."""

    topics: list[PagedTopicDescription]
    next_cursor: TopicPartitionsCursor | None


class GrownTopic(AdminResult):
    """Whether a topic got its partitions."""

    name: str
    error_code: int
    error_message: str | None


class GrownTopics(AdminResult):
    """The outcome for each topic that was to get partitions."""

    results: list[GrownTopic]


class DeletedRecords(AdminResult):
    """The first offset of a partition after records were deleted."""

    partition_index: int
    low_watermark: int
    error_code: int


class PartitionElection(AdminResult):
    """The outcome of one partition's election."""

    partition_id: int
    error_code: int
    error_message: str | None


class TopicElections(AdminResult):
    """The outcome of the elections in one topic."""

    topic: str
    partition_result: list[PartitionElection]


class Elections(AdminResult):
    """The outcome of elections."""

    replica_election_results: list[TopicElections]


class PartitionReassignment(AdminResult):
    """A partition on the move: all its replicas, and which it gains and loses."""

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]
