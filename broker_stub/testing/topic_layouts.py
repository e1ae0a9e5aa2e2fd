"""Where requests and responses list topics and partitions: one row per API.

An API that is not in the table can only be failed as a whole. Immutable.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Place(NamedTuple):
    """Field names: the path to the topics, and the fields of a topic and its partitions."""

    path: tuple[str, ...]
    topic: str | None = "name"
    """None where the topics are bare names."""
    partitions: str | None = "partitions"
    number: str | None = "partition_index"
    """None where the partitions are bare numbers."""


class Layout(NamedTuple):
    """Where an API lists its topics and partitions; some APIs have two forms."""

    requests: tuple[Place, ...]
    responses: tuple[Place, ...]
    blank: Mapping[str, object] = {}
    """Values of a failed partition or topic that differ from the declared defaults."""
    topic_fails_alone: bool = False
    """A fault for a whole topic sets the topic's own error, not its partitions' errors."""
    only_reads: bool = False
    """The request has no side effect to prevent."""
    empty_is_all: bool = False
    """A request that names no topic is about every topic."""


FETCH: Final = 1
FETCH_WIDE_ERRORS: Final = frozenset({-1, 35, 42, 70, 71, 106})
"""Errors of a whole Fetch, as in Kafka: of its session, its version, or its form, or unexpected.

Any other error belongs to a partition.
"""
_TOPICS: Final = ("topics",)
_GROUPS: Final = ("groups", "topics")

LAYOUTS: Final[Mapping[int, Layout]] = {
    0: Layout(  # Produce
        (Place(("topic_data",), partitions="partition_data", number="index"),),
        (Place(("responses",), partitions="partition_responses", number="index"),),
        blank={"base_offset": -1},
    ),
    FETCH: Layout(
        (Place(_TOPICS, topic="topic", number="partition"),),
        (Place(("responses",), topic="topic"),),
        blank={"high_watermark": -1, "aborted_transactions": None, "records": b""},
    ),
    2: Layout((Place(_TOPICS),), (Place(_TOPICS),), only_reads=True),  # ListOffsets
    3: Layout(  # Metadata
        (Place(_TOPICS, partitions=None),),
        (Place(_TOPICS),),
        blank={"leader_id": -1},
        topic_fails_alone=True,
    ),
    8: Layout((Place(_TOPICS),), (Place(_TOPICS),)),  # OffsetCommit
    9: Layout(  # OffsetFetch
        (
            Place(_TOPICS, partitions="partition_indexes", number=None),
            Place(_GROUPS, partitions="partition_indexes", number=None),
        ),
        (Place(_TOPICS), Place(_GROUPS)),
        blank={"committed_offset": -1, "metadata": ""},
        only_reads=True,
    ),
    19: Layout(  # CreateTopics
        (Place(_TOPICS, partitions=None),),
        (Place(_TOPICS, partitions=None),),
        topic_fails_alone=True,
    ),
    20: Layout(  # DeleteTopics
        (
            Place(_TOPICS, partitions=None),
            Place(("topic_names",), topic=None, partitions=None),
        ),
        (Place(("responses",), partitions=None),),
        topic_fails_alone=True,
    ),
    21: Layout((Place(_TOPICS),), (Place(_TOPICS),), blank={"low_watermark": -1}),  # DeleteRecords
    23: Layout(  # OffsetForLeaderEpoch
        (Place(_TOPICS, topic="topic", number="partition"),),
        (Place(_TOPICS, topic="topic", number="partition"),),
        only_reads=True,
    ),
    28: Layout((Place(_TOPICS),), (Place(_TOPICS),)),  # TxnOffsetCommit
    37: Layout(  # CreatePartitions
        (Place(_TOPICS, partitions=None),),
        (Place(("results",), partitions=None),),
        topic_fails_alone=True,
    ),
    43: Layout(  # ElectLeaders
        (Place(("topic_partitions",), topic="topic", number=None),),
        (
            Place(
                ("replica_election_results",),
                topic="topic",
                partitions="partition_result",
                number="partition_id",
            ),
        ),
    ),
    45: Layout((Place(_TOPICS),), (Place(("responses",)),)),  # AlterPartitionReassignments
    47: Layout((Place(_TOPICS),), (Place(_TOPICS),)),  # OffsetDelete
    61: Layout(  # DescribeProducers
        (Place(_TOPICS, partitions="partition_indexes", number=None),),
        (Place(_TOPICS),),
        only_reads=True,
    ),
    75: Layout(  # DescribeTopicPartitions
        (Place(_TOPICS, partitions=None),),
        (Place(_TOPICS),),
        blank={"leader_id": -1},
        topic_fails_alone=True,
        only_reads=True,
        empty_is_all=True,
    ),
}
