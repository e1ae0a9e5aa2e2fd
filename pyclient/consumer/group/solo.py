"""Subscribed topics without a group: this consumer reads all their partitions.

kafka-python's simplest consumer, which has topics and no `group_id`. The I/O thread only.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from pyclient.consumer.cluster import Cluster
from pyclient.consumer.group.membership import (
    GroupMembership,
    MembershipFigures,
    MembershipStatus,
    RebalanceStep,
    StepKind,
)
from pyclient.consumer.inbox import Inbox
from pyclient.consumer.offsets.commit import Committer
from pyclient.consumer.subscription_state import SubscriptionState, SubscriptionType
from pyclient.consumer.topic_interest import TopicInterest
from pyclient.errors import IllegalStateError, KafkaError
from pyclient.metadata import ClusterMetadata
from pyclient.net.request_manager import NOTHING_TO_DO, PollResult
from pyclient.types import ConsumerGroupMetadata, TopicPartition

_MISSING_VERSIONS: Final = 3
"""After so many metadata responses without it, a topic of a pattern is gone."""


class SoloMembership(GroupMembership):
    """A group of one that no broker knows of. See `membership.GroupMembership`."""

    def __init__(
        self,
        subscription: SubscriptionState,
        cluster: Cluster,
        interest: TopicInterest,
        inbox: Inbox,
        run_step: Callable[[RebalanceStep], bool],
    ) -> None:
        """`run_step` does a step, on the caller's thread, and reports it to `on_step_done`."""
        self._subscription = subscription
        self._cluster = cluster
        self._interest = interest
        self._inbox = inbox
        self._run_step = run_step
        self._step: RebalanceStep | None = None
        self._missing_since: dict[str, int] = {}  # topics of a pattern, by metadata version

    def poll(self, now_ms: float) -> PollResult:  # noqa: ARG002
        """Nothing is ever sent."""
        return NOTHING_TO_DO

    def close(self, error: KafkaError) -> None:
        """The loop has ended; there are no waiters here."""

    def on_subscription(self) -> None:
        """The subscription changed."""
        self._interest.refresh()
        self._take_all()

    def on_metadata(self, snapshot: ClusterMetadata) -> None:  # noqa: ARG002  the cluster has it
        """Topics or partitions may have been created or deleted."""
        self._take_all()

    def on_step_done(self, step: RebalanceStep) -> None:
        """The caller's thread has taken the partitions."""
        if step is self._step:
            self._step = None
            self._take_all()

    def leave(self, reason: str) -> None:  # noqa: ARG002
        """Cancel a pending assignment; no broker knows of this consumer."""
        if self._step is not None:
            self._step.cancel()
            self._step = None

    def has_left(self) -> bool:
        """Always: no broker knows of this consumer."""
        return True

    def committer(self) -> Committer | KafkaError:
        """Always an error: offsets are committed to a group."""
        return IllegalStateError("offsets are committed to a group, and there is no group_id")

    def on_commit_error(self, error: KafkaError, committer: Committer) -> KafkaError:  # noqa: ARG002
        """Never called: there are no commits without a group."""
        return error

    def enforce_rebalance(self, reason: str) -> None:
        """Never called: there is no group."""

    def figures(self) -> MembershipFigures:
        """None: nothing is sent."""
        return MembershipFigures()

    def status(self) -> MembershipStatus:
        """Always the same. Any thread."""
        return MembershipStatus("alone", 0.0, is_settled=True)

    def metadata(self) -> ConsumerGroupMetadata:
        """Of no group. Any thread."""
        return ConsumerGroupMetadata()

    def _take_all(self) -> None:
        if self._step is not None or not self._subscription.has_auto_assigned_partitions():
            return
        partitions = self._partitions()
        if set(partitions) != self._subscription.assigned():
            self._step = RebalanceStep(StepKind.ASSIGN, partitions)
            self._inbox.post_step(partial(self._run_step, self._step))

    def _partitions(self) -> tuple[TopicPartition, ...]:
        """What to read: all partitions of the topics, and those that metadata does not show now.

        A response without a topic, or with an error in its place, may come from a broker that
        does not know it yet or any more. To give the partitions up would lose their positions.
        """
        snapshot, assigned = self._cluster.snapshot, self._subscription.assigned()
        partitions = {
            TopicPartition(topic, number)
            for topic in self._subscription.topics
            for number in snapshot.partitions_for_topic(topic) or ()
        }
        # A pattern drops a topic that is not listed: only when it stays away.
        kept = set(self._subscription.topics)
        if self._subscription.type is SubscriptionType.PATTERN:
            gone = {topic for topic, _ in assigned if topic not in kept}
            self._missing_since = {
                topic: self._missing_since.get(topic, snapshot.version) for topic in gone
            }
            kept |= {
                topic
                for topic, since in self._missing_since.items()
                if snapshot.version - since < _MISSING_VERSIONS
            }
        kept -= snapshot.topics.keys()
        partitions |= {partition for partition in assigned if partition.topic in kept}
        return tuple(sorted(partitions))
