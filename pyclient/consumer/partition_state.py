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


class ValidationTarget(NamedTuple):
    """A position to be checked with a leader, and the epoch of the record before it."""

    offset: int
    offset_epoch: int
    leader: int
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
    is_validating: bool
    offsets: PartitionOffsets | None


class PartitionState:
    __slots__ = (
        "epoch",
        "failed",
        "fetch_offset",
        "former_topic_id",
        "held",
        "is_validating",
        "leader",
        "leader_epoch",
        "offsets",
        "paused",
        "position",
        "reset",
        "since_epoch",
        "topic_id",
    )

    def __init__(self, epoch: int, topic_id: bytes | None = None) -> None:
        self.epoch = epoch
        self.since_epoch = epoch  # of the last assignment, seek or reset; `refetch` keeps it
        self.topic_id = topic_id  # of the topic that the position is in; None if unknown
        self.former_topic_id: bytes | None = None  # until the program gets something of this one
        self.position: int | None = None
        self.leader_epoch = NO_LEADER_EPOCH  # of the last record before the position
        self.fetch_offset = 0
        self.leader: tuple[int, int] | None = None  # and its epoch: what the position is checked by
        self.is_validating = False  # until that leader says that its log has the position
        self.reset: OffsetReset | None = None  # to be found by ListOffsets
        self.paused = False
        self.held = True  # until the program's listener knows of it, or the program polls
        self.failed = False  # an error is on its way to the caller
        self.offsets: PartitionOffsets | None = None

    def is_fetchable(self) -> bool:
        """Whether to ask a broker for more of it."""
        return self.position is not None and not (
            self.paused or self.held or self.failed or self.is_validating
        )

    def lag(self, read_committed: bool) -> int | None:
        """How far the position is behind the end; None while one of them is unknown."""
        if self.offsets is None or self.position is None:
            return None
        high_watermark, last_stable_offset, _ = self.offsets
        # Behind the last stable offset there is nothing to read for this consumer.
        is_bounded = read_committed and last_stable_offset >= 0
        return max(0, (last_stable_offset if is_bounded else high_watermark) - self.position)

    def facts(self, partition: TopicPartition) -> PartitionFacts:
        """The state as of this moment."""
        return PartitionFacts(
            partition,
            self.epoch,
            self.position,
            self.fetch_offset,
            self.reset,
            self.paused,
            self.held,
            self.failed,
            self.is_validating,
            self.offsets,
        )

    def move(self, epoch: int, position: int | None, leader_epoch: int) -> None:
        """Begin an epoch at a position, or without one."""
        self.epoch = self.since_epoch = epoch
        self.position = position
        self.leader_epoch = leader_epoch
        self.leader = None
        self.is_validating = False
        self.fetch_offset = position or 0
        self.reset = None
        self.failed = False

    def refetch(self, epoch: int) -> None:
        """Begin an epoch at the present position: what was fetched before is stale."""
        self.epoch = epoch
        self.fetch_offset = self.position or 0
