"""One assigned partition: where it is read, and whether it may be.

Plain data under the lock of `SubscriptionState`; the tuples beside it are what threads hand each
other about a partition.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pyclient.types import TopicPartition

NO_LEADER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """Where a partition starts that has no position.

    Attributes:
        name: as in "earliest".
        timestamp: what ListOffsets is asked for, unless `duration_ms` is given.
        duration_ms: start with the records of the last so many milliseconds.
    """

    name: str
    timestamp: int
    duration_ms: int | None = None

    EARLIEST: ClassVar["OffsetReset"]
    LATEST: ClassVar["OffsetReset"]

    @classmethod
    def by_duration(cls, duration_ms: int) -> "OffsetReset":
        """Start with the first record of the last `duration_ms`, or behind the last record."""
        return cls(f"first record of the last {duration_ms} ms", LATEST, duration_ms)

    def timestamp_at(self, wall_ms: float) -> int:
        """What to ask ListOffsets for, by the time of day."""
        return self.timestamp if self.duration_ms is None else int(wall_ms) - self.duration_ms


EARLIEST = -2
LATEST = -1
OffsetReset.EARLIEST = OffsetReset("earliest", EARLIEST)
OffsetReset.LATEST = OffsetReset("latest", LATEST)


class PartitionEpoch(NamedTuple):
    """A partition as of one epoch: what an answer has to name to be taken."""

    partition: TopicPartition
    epoch: int


class PositionMove(NamedTuple):
    """A position to set, and the leader epoch of the record before it."""

    at: PartitionEpoch
    next_offset: int
    leader_epoch: int


class FetchTarget(NamedTuple):
    """A partition that may be fetched, and from where."""

    partition: TopicPartition
    epoch: int
    fetch_offset: int


class PartitionOffsets(NamedTuple):
    """What a broker last told about a partition's ends."""

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class PartitionFacts(NamedTuple):
    """A partition's state as of one moment, for `health`."""

    partition: TopicPartition
    epoch: int
    position: int | None
    fetch_offset: int
    reset: OffsetReset | None
    paused: bool
    held: bool
    failed: bool
    offsets: PartitionOffsets | None


class PartitionState:
    __slots__ = (
        "epoch",
        "failed",
        "fetch_offset",
        "held",
        "leader_epoch",
        "offsets",
        "paused",
        "position",
        "reset",
        "topic_id",
    )

    def __init__(self, epoch: int, topic_id: bytes | None = None) -> None:
        self.epoch = epoch
        self.topic_id = topic_id  # of the topic that the position is in; None if unknown
        self.position: int | None = None
        self.leader_epoch = NO_LEADER_EPOCH  # of the last record before the position
        self.fetch_offset = 0
        self.reset: OffsetReset | None = None  # to be found by ListOffsets
        self.paused = False
        self.held = True  # until the program's listener knows of it, or the program polls
        self.failed = False  # an error is on its way to the caller
        self.offsets: PartitionOffsets | None = None

    def is_fetchable(self) -> bool:
        """Whether to ask a broker for more of it."""
        return self.position is not None and not (self.paused or self.held or self.failed)

    def move(self, epoch: int, position: int | None, leader_epoch: int) -> None:
        """Begin an epoch at a position, or without one."""
        self.epoch = epoch
        self.position = position
        self.leader_epoch = leader_epoch
        self.fetch_offset = position or 0
        self.reset = None
        self.failed = False
