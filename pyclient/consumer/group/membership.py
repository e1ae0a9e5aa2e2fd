"""Membership in a group, as the rest of the consumer sees it: the interface of all protocols.

A membership lives on the I/O thread. What only the caller's thread may do (commit what the
program has read, run its listener or its assignor) it asks for by a `RebalanceStep`, and goes on
when the step is done.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from pyclient.consumer.offsets.commit import Committer
from pyclient.errors import KafkaError
from pyclient.metadata import ClusterMetadata
from pyclient.net.request_manager import PollResult
from pyclient.types import ConsumerGroupMetadata, TopicPartition


class StepKind(Enum):
    """What the caller's thread has to do with its partitions."""

    REVOKE = "revoke"
    """Commit, tell the listener, give these partitions up."""
    ASSIGN = "assign"
    """Revoke what is not among these partitions, and take the rest of them."""
    LOSE = "lose"
    """Tell the listener that all partitions are gone already."""
    WORK = "work"
    """Nothing, besides the step's `work`."""


class RebalanceStep:
    """One step of a rebalance for the caller's thread.

    The I/O thread may take it back as long as the caller has not begun (`cancel`), and put
    another in its place.

    Attributes:
        partitions: what to revoke, or all that is to be assigned.
        topic_ids: of the topics to be assigned, if the coordinator names them by id.
        work: the program's code to run, after the revocation and before the assignment.
        result, error: what `work` returned or raised.
        has_revoked: whether partitions were given up.
        is_cancelled: things have moved on: stop where you are. Set by the I/O thread, read by
            the caller's.
    """

    __slots__ = (
        "_claim",
        "error",
        "has_revoked",
        "is_cancelled",
        "kind",
        "partitions",
        "progress",
        "result",
        "topic_ids",
        "work",
    )

    def __init__(
        self,
        kind: StepKind,
        partitions: tuple[TopicPartition, ...] = (),
        work: Callable[[], Any] | None = None,
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> None:
        self.kind = kind
        self.partitions = partitions
        self.work = work
        self.topic_ids = topic_ids or {}
        self.result: Any = None
        self.error: BaseException | None = None
        self.has_revoked = False
        self.is_cancelled = False
        self.progress: Any = None  # the Rebalancer's, from its beginning on
        self._claim = deque([True])  # taken by the thread that begins or cancels: pop is atomic

    def begin(self) -> bool:
        """Start it, on the caller's thread; False if it was cancelled first."""
        return _take(self._claim)

    def cancel(self) -> bool:
        """Stop it, on the I/O thread; False if the caller has begun, and may have changed much."""
        self.is_cancelled = True
        return _take(self._claim)

    def __repr__(self) -> str:
        return f"RebalanceStep({self.kind.value}, {list(self.partitions)})"


def _take(claim: deque[bool]) -> bool:
    try:
        return claim.pop()
    except IndexError:
        return False


@dataclass(frozen=True, slots=True)
class MembershipFigures:
    """What a membership counts, for the metrics."""

    heartbeat_total: int = 0
    last_heartbeat_at_ms: float | None = None
    rebalance_total: int = 0
    failed_rebalance_total: int = 0


@dataclass(frozen=True, slots=True)
class MembershipStatus:
    """What a membership is doing, for `KafkaConsumer.health`.

    Attributes:
        state: in the words of its protocol, such as "joining"; "alone" without a group.
        since_ms: when it entered the state.
        waits_for: what it waits for on the way to another state; None if it is settled.
        is_settled: whether it has its partitions.
        awaits_program: whether it waits for the program to poll.
        needs_coordinator: whether it sends heartbeats now.
        last_heartbeat_at_ms: when the coordinator last answered one.
        heartbeat_interval_ms: how often it sends them now; in some protocols the coordinator says.
    """

    state: str
    since_ms: float
    is_settled: bool
    waits_for: str | None = None
    awaits_program: bool = False
    coordinator: str | None = None
    coordinator_since_ms: float = 0.0
    needs_coordinator: bool = False
    last_heartbeat_at_ms: float | None = None
    heartbeat_interval_ms: float = 0.0


class OffsetReader(NamedTuple):
    """The member as which committed offsets are looked up; the default is none.

    With a member epoch, the coordinator refuses a lookup of a member that is behind: else it
    could start where another has gone on meanwhile.
    """

    member_id: str | None = None
    member_epoch: int = -1


class GroupMembership(Protocol):
    """A member of a group, or of none. The I/O thread only, but for what says otherwise.

    Methods with a body are for protocols that need nothing else.
    """

    def poll(self, now_ms: float) -> PollResult:
        """The requests to send now."""

    def close(self, error: KafkaError) -> None:
        """The loop has ended; fail what waits."""

    def on_subscription(self) -> None:
        """The subscription changed."""

    def on_metadata(self, snapshot: ClusterMetadata) -> None:
        """Topics or partitions may have been created or deleted."""

    def on_step_done(self, step: RebalanceStep) -> None:
        """The caller's thread has completed a step."""

    def enforce_rebalance(self, reason: str) -> None:
        """Rebalance, though nothing has changed that this membership knows of."""

    def leave(self, reason: str) -> None:
        """Leave the group, and tell the coordinator."""

    def has_left(self) -> bool:
        """Whether leaving is done: the coordinator knows, or cannot be reached."""

    def committer(self) -> Committer | KafkaError:
        """The member that commits, or the error that prevents commits. Any thread."""

    def on_commit_error(self, error: KafkaError, committer: Committer) -> KafkaError | Committer:
        """The coordinator refused a commit: what to report, or who is to commit instead.

        A protocol whose member gets a new epoch while it keeps its partitions returns the
        member as it is now.
        """

    def offset_reader(self) -> OffsetReader:
        """The member as which to look up committed offsets."""
        return OffsetReader()

    def on_lookup_error(self, error: KafkaError, reader: OffsetReader) -> bool:  # noqa: ARG002
        """The coordinator refused a lookup: whether to repeat it as the member that is now.

        Only for errors that are not retried anyway.
        """
        return False

    def metadata(self) -> ConsumerGroupMetadata:
        """A snapshot for the program. Any thread."""

    def figures(self) -> MembershipFigures:
        """What it has counted. Any thread."""

    def status(self) -> MembershipStatus:
        """What it is doing. Any thread."""
