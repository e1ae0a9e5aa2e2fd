"""What `KafkaConsumer.health` returns. A leaf."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyclient.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Stall:
    """Something that should go on and does not.

    Attributes:
        what: "the membership", or a partition such as "orders-0".
        reason: why, as far as the client can tell.
        for_s: for how many seconds.
    """

    what: str
    reason: str
    for_s: float


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """What one assigned partition is doing.

    Attributes:
        state: "reading", "caught up", "paused", "held" (the listener or the first poll is due),
            "starting" (its position is looked up), "failed" (the next poll raises an error),
            "buffered" (fetched records wait for the program), "leaderless", "failing" or "waiting".
        reason: why nothing flows; None while records flow, or there are none.
        state_for_s: seconds in this state, as far as the monitor has seen.
        position: the next offset that the program gets.
        lag: how many records are behind the position, as of the last fetch.
        leader: the broker's id.
        last_fetch_s_ago: when a broker last answered a fetch of it; None if none has.
    """

    state: str
    reason: str | None
    state_for_s: float
    position: int | None
    lag: int | None
    leader: int | None
    last_fetch_s_ago: float | None


@dataclass(frozen=True, slots=True)
class MembershipHealth:
    """What the membership in the group is doing.

    Attributes:
        group_id: None without a group.
        state: "stable", "joining" and so on; "alone" without a group.
        state_for_s: seconds in this state.
        waits_for: what it waits for; None if it is settled.
        coordinator: as in "node 1 (host:9092)"; None while it is unknown.
        last_heartbeat_s_ago: when the coordinator last answered a heartbeat; None if never.
        last_poll_s_ago: when the program last polled; None if never.
    """

    group_id: str | None
    member_id: str
    generation_id: int
    state: str
    state_for_s: float
    waits_for: str | None
    coordinator: str | None
    last_heartbeat_s_ago: float | None
    last_poll_s_ago: float | None


@dataclass(frozen=True, slots=True)
class ConsumerHealth:
    """What a consumer is doing, as of one moment.

    Attributes:
        stalls: what does not go on, though it should; each was logged when it was noticed.
    """

    membership: MembershipHealth
    partitions: Mapping[TopicPartition, PartitionHealth]
    stalls: tuple[Stall, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is stalled."""
        return not self.stalls
