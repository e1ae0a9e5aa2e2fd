"""What the caller's thread asks the I/O thread to do.

The caller's thread only. Each call submits a command and returns at once, or returns a `Pending`
to wait for.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial

from pyclient.consumer.group.membership import GroupMembership
from pyclient.consumer.inbox import Inbox
from pyclient.consumer.offsets.commit import Commit, CommitManager, CommitRetries, Offsets
from pyclient.consumer.offsets.committed import CommittedOffsetManager, CommittedOffsets
from pyclient.consumer.offsets.list_offsets import ListOffsetsManager
from pyclient.consumer.pending import Pending, PendingOffsets
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.consumer.topic_interest import TopicInterest
from pyclient.errors import IllegalStateError, KafkaError
from pyclient.net.engine import Engine
from pyclient.net.request_manager import UnsentRequest
from pyclient.protocol.schema import Message
from pyclient.types import TopicPartition


class CallerRequests:
    """Submits the caller's requests to the managers on the I/O thread."""

    def __init__(
        self,
        engine: Engine,
        inbox: Inbox,
        subscription: SubscriptionState,
        membership: GroupMembership,
        interest: TopicInterest,
        list_offsets: ListOffsetsManager,
        connection_for_lookups: Callable[[int], int],
        commits: CommitManager | None,
        committed: CommittedOffsetManager | None,
    ) -> None:
        """`commits` and `committed` are None for a consumer without a group."""
        self._engine = engine
        self._inbox = inbox
        self._subscription = subscription
        self._membership = membership
        self._interest = interest
        self._list_offsets = list_offsets
        self._connection_for_lookups = connection_for_lookups
        self._commits = commits
        self._committed = committed

    def subscription_changed(self) -> None:
        """The program subscribed to topics or a pattern: rejoin the group."""
        self._engine.submit(self._membership.on_subscription)

    def assignment_changed(self) -> None:
        """The program assigned partitions itself, or unsubscribed: follow the metadata of these."""
        self._engine.submit(self._interest.refresh)

    def enforce_rebalance(self, reason: str) -> None:
        """Rejoin the group.

        Raises:
            IllegalStateError: there is no group.
        """
        if self._commits is None:
            raise IllegalStateError("there is no group to rebalance: give the consumer a group_id")
        self._engine.submit(partial(self._membership.enforce_rebalance, reason))

    def leave(self, reason: str, timeout_ms: float) -> None:
        """Start to leave the group; `GroupMembership.has_left` tells when that is done."""
        self._engine.call(partial(self._membership.leave, reason), timeout_ms)

    def commit(
        self,
        offsets: Offsets,
        timeout_ms: float,
        retries: CommitRetries,
        then: Callable[[KafkaError | None], object] | None = None,
        pending: Pending[None] | None = None,
    ) -> Pending[None]:
        """Commit offsets to the group, as the member that this consumer is now.

        Args:
            offsets: what to commit.
            timeout_ms: when to give up.
            retries: what to do about errors that may pass.
            then: runs in a later poll.
            pending: gets the result, for a caller that may be interrupted inside this call.

        Raises:
            IllegalStateError: there is no group.
        """
        if self._commits is None:
            raise _no_group()
        pending = pending or self.new_pending()

        def on_done(error: KafkaError | None) -> None:
            pending.complete(error)
            if then is not None:
                self._inbox.post(partial(then, error))

        committer = self._membership.committer()
        if isinstance(committer, KafkaError):
            on_done(committer if offsets else None)
            return pending
        now_ms = self._engine.clock.monotonic_ms()
        topic_ids = self._subscription.topic_ids_of(offsets)
        expires_at_ms = now_ms + timeout_ms
        commit = Commit(offsets, committer, on_done, now_ms, expires_at_ms, retries, topic_ids)
        pending.on_abandon = commit.abandon
        self._engine.submit(partial(self._commits.commit, commit))
        return pending

    def new_pending(self) -> Pending[None]:
        """A result that ends the caller's wait."""
        return Pending(self._inbox.ring)

    def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: float
    ) -> Pending[CommittedOffsets]:
        """Look up the offsets that the group has committed.

        Raises:
            IllegalStateError: there is no group.
        """
        if self._committed is None:
            raise _no_group()
        pending: Pending[CommittedOffsets] = Pending(self._inbox.ring)
        self._engine.submit(
            partial(self._committed.lookup, partitions, pending.complete, self._expiry(timeout_ms))
        )
        return pending

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float
    ) -> PendingOffsets:
        """Look up offsets by timestamp."""
        pending = PendingOffsets(timestamps, self._inbox.ring)
        expires_at_ms = self._expiry(timeout_ms)

        def look_up() -> None:
            for partition, timestamp in timestamps.items():
                on_found = partial(pending.add, partition)
                self._list_offsets.lookup(partition, timestamp, on_found, expires_at_ms)

        self._engine.submit(look_up)
        return pending

    def send_to_any(self, request: Message, timeout_ms: float) -> Pending[Message]:
        """Send a request that any broker can answer, on a connection without a waiting fetch."""
        pending: Pending[Message] = Pending(self._inbox.ring)
        engine = self._engine

        def send() -> None:
            nodes = list(engine.metadata.snapshot.brokers)
            node = self._connection_for_lookups(engine.entropy.choice(nodes)) if nodes else None
            unsent = UnsentRequest(request, node, lambda o, _: pending.complete(o), timeout_ms)
            engine.network.send(unsent, engine.clock.monotonic_ms())

        engine.submit(send)
        return pending

    def _expiry(self, timeout_ms: float) -> float:
        return self._engine.clock.monotonic_ms() + timeout_ms


def _no_group() -> KafkaError:
    return IllegalStateError("offsets are committed to a group: give the consumer a group_id")
