"""Membership in a group, as the rest of the consumer sees it: the interface of all protocols.

A membership lives on the I/O thread. What only the caller's thread may do (commit what the
program has read, run its listener) it asks for by a `RebalanceStep`, and goes on when the step
is done.
"""

from enum import Enum
from typing import Protocol

from pyclient.consumer.offsets.commit import Committer
from pyclient.errors import KafkaError
from pyclient.metadata import ClusterMetadata
from pyclient.net.request_manager import PollResult
from pyclient.types import ConsumerGroupMetadata, TopicPartition


class StepKind(Enum):
    """What the caller's thread has to do with its partitions."""

    REVOKE = "revoke"  # commit, tell the listener, give all partitions up
    ASSIGN = "assign"  # take partitions, tell the listener
    LOSE = "lose"  # tell the listener that all partitions are gone already


class RebalanceStep:
    """One step of a rebalance for the caller's thread.

    Attributes:
        partitions: what to assign.
        is_cancelled: things have moved on, do nothing. Set by the I/O thread, read by the
            caller's; a step that began before is ignored when it is done.
    """

    __slots__ = ("is_cancelled", "kind", "partitions")

    def __init__(self, kind: StepKind, partitions: tuple[TopicPartition, ...] = ()) -> None:
        self.kind = kind
        self.partitions = partitions
        self.is_cancelled = False

    def __repr__(self) -> str:
        return f"RebalanceStep({self.kind.value}, {list(self.partitions)})"


class GroupMembership(Protocol):
    """A member of a group, or of none. The I/O thread only, but for `metadata`."""

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

    def leave(self, reason: str) -> None:
        """Leave the group, and tell the coordinator."""

    def has_left(self) -> bool:
        """Whether leaving is done: the coordinator knows, or cannot be reached."""

    def committer(self) -> Committer | KafkaError:
        """The member that commits, or the error that prevents commits."""

    def on_commit_error(self, error: KafkaError, committer: Committer) -> None:
        """The coordinator refused a commit, perhaps because of this member's state."""

    def metadata(self) -> ConsumerGroupMetadata:
        """A snapshot for the program. Any thread."""
