"""The consumer without its face: the cores on an engine, and the way across the threads.

`KafkaConsumer` is one face: it checks arguments, waits and returns records. Here the parts are
put together from the configuration; the methods are for the caller's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from pyclient.consumer.fetch.buffer import FetchBuffer
from pyclient.consumer.fetch.collector import FetchCollector
from pyclient.consumer.fetch.request_manager import (
    READ_COMMITTED,
    FetchOptions,
    FetchRequestManager,
)
from pyclient.consumer.group.assignors import configured_assignors
from pyclient.consumer.group.classic import ClassicMembership
from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.consumer.group.heartbeat import PollTimer
from pyclient.consumer.group.member import GroupOptions
from pyclient.consumer.group.membership import GroupMembership, RebalanceStep
from pyclient.consumer.group.solo import SoloMembership
from pyclient.consumer.inbox import Inbox
from pyclient.consumer.metrics import COORDINATOR_GROUP, ConsumerMetrics
from pyclient.consumer.offsets.commit import CommitManager, Offsets
from pyclient.consumer.offsets.committed import CommittedOffsetManager, CommittedOffsets
from pyclient.consumer.offsets.list_offsets import ListOffsetsManager
from pyclient.consumer.offsets.reset import OffsetResetManager
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.pending import Pending, PendingOffsets
from pyclient.consumer.rebalance import Rebalancer
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.consumer.topic_interest import TopicInterest
from pyclient.errors import IllegalStateError, KafkaError
from pyclient.metadata import ClusterMetadata
from pyclient.net.engine import Engine
from pyclient.net.request_manager import UnsentRequest, coordinator_connection
from pyclient.protocol.schema import Message
from pyclient.serialization import deserializer
from pyclient.timers import ExponentialBackoff
from pyclient.types import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    from pyclient.config.definition import Config
    from pyclient.net.environment import Environment

_RESETS: Final = {
    "earliest": OffsetReset.EARLIEST,
    "latest": OffsetReset.LATEST,
    "none": None,
}
_ISOLATION_LEVELS: Final = {"read_uncommitted": 0, "read_committed": READ_COMMITTED}


class ConsumerCore:
    """One consumer's parts.

    Attributes:
        group_id: None for a consumer without a group.
        subscription, inbox, collector, poll_timer, metrics: what the caller's thread shares
            with the I/O thread, or has to itself.
    """

    def __init__(
        self,
        config: Config,
        client_id: str,
        environment: Environment | None,
        before_revocation: Callable[[], None],
    ) -> None:
        self.config = config
        self.group_id: str | None = config["group.id"]
        self.engine = engine = Engine(
            config,
            client_id=client_id,
            allow_auto_create_topics=config["allow.auto.create.topics"],
            environment=environment,
        )
        self.metrics = ConsumerMetrics(engine.clock)
        self.subscription = SubscriptionState(_RESETS[config["auto.offset.reset"]])
        self.inbox = Inbox(engine.waiter, engine.submit)
        self.poll_timer = PollTimer(config["max.poll.interval.ms"])
        self.rebalancer = Rebalancer(self.subscription, before_revocation, self._report_step)
        self._interest = TopicInterest(
            self.subscription, engine.metadata, self.inbox, config["exclude.internal.topics"]
        )
        self._buffer = FetchBuffer(config["fetch.buffer.bytes"], self.inbox.ring)
        self.collector = FetchCollector(
            self._buffer,
            self.subscription,
            self.metrics,
            engine.wake,
            deserializer(config["key.deserializer"]),
            deserializer(config["value.deserializer"]),
        )
        self._fetches = self._fetch_manager()
        self._list_offsets = ListOffsetsManager(
            engine.metadata,
            self._backoff(),
            self._connection_for_lookups,
            _ISOLATION_LEVELS[config["isolation.level"]],
            config["request.timeout.ms"],
        )
        self._resets = OffsetResetManager(
            self.subscription, self._list_offsets, self.inbox, self.group_id is not None
        )
        self._membership: GroupMembership
        self._commits: CommitManager | None = None
        self._committed: CommittedOffsetManager | None = None
        self._classic: ClassicMembership | None = None
        # Polled in this order on every turn: who wants something before who brings it.
        if self.group_id is None:
            self._membership = SoloMembership(
                self.subscription, engine.metadata, self._interest, self.inbox, self.rebalancer.run
            )
            engine.add_manager(self._membership)
        else:
            self._join_group(self.group_id)
        engine.add_manager(self._resets)
        engine.add_manager(self._list_offsets)
        engine.add_manager(self._fetches)
        engine.metadata.add_listener(self._on_metadata)

    def _backoff(self) -> ExponentialBackoff:
        return ExponentialBackoff(
            self.engine.entropy,
            self.config["retry.backoff.ms"],
            self.config["retry.backoff.max.ms"],
        )

    def _fetch_manager(self) -> FetchRequestManager:
        config = self.config
        return FetchRequestManager(
            FetchOptions(
                max_wait_ms=config["fetch.max.wait.ms"],
                min_bytes=config["fetch.min.bytes"],
                max_bytes=config["fetch.max.bytes"],
                max_partition_bytes=config["max.partition.fetch.bytes"],
                isolation_level=_ISOLATION_LEVELS[config["isolation.level"]],
                check_crcs=config["check.crcs"],
                use_sessions=config["enable.incremental.fetch.sessions"],
            ),
            self.subscription,
            self._buffer,
            self.engine.metadata,
            self._backoff(),
            self.inbox,
            self.metrics,
        )

    def _join_group(self, group_id: str) -> None:
        config, engine = self.config, self.engine
        coordinator = CoordinatorFinder(group_id, engine.network, self._backoff(), self.inbox)
        options = GroupOptions(
            group_id,
            config["group.instance.id"],
            config["session.timeout.ms"],
            config["heartbeat.interval.ms"],
            config["max.poll.interval.ms"],
            config["request.timeout.ms"],
        )
        self._membership = self._classic = ClassicMembership(
            options,
            configured_assignors(config["partition.assignment.strategy"]),
            self.subscription,
            engine.metadata,
            self._interest,
            coordinator,
            self.poll_timer,
            self._backoff(),
            self.inbox,
            self.rebalancer.run,
        )
        self._commits = CommitManager(
            group_id,
            coordinator,
            engine.metadata,
            self._backoff(),
            self._membership.committer,
            self._membership.on_commit_error,
        )
        self._committed = CommittedOffsetManager(
            group_id, coordinator, self.subscription, self._backoff(), self.inbox
        )
        engine.add_manager(self._membership)
        engine.add_manager(self._commits)
        engine.add_manager(self._committed)
        engine.add_manager(coordinator)

    # --- on the I/O thread -------------------------------------------------------------------

    def _on_metadata(self, snapshot: ClusterMetadata) -> None:
        self._interest.on_metadata(snapshot)
        self._membership.on_metadata(snapshot)

    def _connection_for_lookups(self, node: int) -> int:
        """Not behind a fetch, which may wait for data: then by the second connection."""
        return coordinator_connection(node) if self._fetches.is_fetching(node) else node

    # --- from the caller's thread ------------------------------------------------------------

    def _report_step(self, step: RebalanceStep) -> None:
        self.engine.submit(partial(self._membership.on_step_done, step))

    def start(self) -> None:
        """Begin; wait for a first broker, unless the configuration says not to.

        Raises:
            NoBrokersAvailable: no broker answered in time.
        """
        self.engine.start()
        if self.config["api.version"] is None:
            try:
                self.engine.bootstrap(self.config["bootstrap.timeout.ms"])
            except BaseException:
                self.engine.close(1000)  # nothing is under way but attempts to connect
                raise

    def subscribed(self) -> None:
        """The program subscribed to topics or a pattern."""
        self.engine.submit(self._membership.on_subscription)

    def assigned(self) -> None:
        """The program assigned partitions itself, or unsubscribed from all."""
        self.engine.submit(self._interest.refresh)

    def leave(self, reason: str, timeout_ms: float) -> None:
        """Leave the group; `has_left` tells when it knows."""
        self.engine.call(partial(self._membership.leave, reason), timeout_ms)

    def has_left(self) -> bool:
        """Whether the group was told, or could not be."""
        return self._membership.has_left()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """A snapshot of the membership."""
        return self._membership.metadata()

    def commit(
        self,
        offsets: Offsets,
        timeout_ms: float,
        is_retried: bool,
        then: Callable[[KafkaError | None], object] | None = None,
    ) -> Pending[None]:
        """Commit offsets to the group; `then` runs in a later poll.

        Raises:
            IllegalStateError: there is no group.
        """
        if self._commits is None:
            raise self._no_group()
        pending: Pending[None] = Pending(self.inbox.ring)

        def on_done(error: KafkaError | None) -> None:
            pending.complete(error)
            if then is not None:
                self.inbox.post(partial(then, error))

        expires_at_ms = self.engine.clock.monotonic_ms() + timeout_ms
        self.engine.submit(
            partial(self._commits.commit, offsets, on_done, expires_at_ms, is_retried)
        )
        return pending

    def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: float
    ) -> Pending[CommittedOffsets]:
        """Look up what the group committed.

        Raises:
            IllegalStateError: there is no group.
        """
        if self._committed is None:
            raise self._no_group()
        pending: Pending[CommittedOffsets] = Pending(self.inbox.ring)
        expires_at_ms = self.engine.clock.monotonic_ms() + timeout_ms
        self.engine.submit(
            partial(self._committed.lookup, partitions, pending.complete, expires_at_ms)
        )
        return pending

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float
    ) -> PendingOffsets:
        """Look up offsets by time."""
        pending = PendingOffsets(timestamps, self.inbox.ring)
        expires_at_ms = self.engine.clock.monotonic_ms() + timeout_ms

        def look_up() -> None:
            for partition, timestamp in timestamps.items():
                on_found = partial(pending.add, partition)
                self._list_offsets.lookup(partition, timestamp, on_found, expires_at_ms)

        self.engine.submit(look_up)
        return pending

    def ask_any(self, request: Message, timeout_ms: float) -> Pending[Message]:
        """Ask what every broker knows, and not behind a fetch that waits for data."""
        pending: Pending[Message] = Pending(self.inbox.ring)
        engine = self.engine

        def send() -> None:
            nodes = list(engine.metadata.snapshot.brokers)
            busy = bool(nodes) and all(self._fetches.is_fetching(node) for node in nodes)
            node = coordinator_connection(engine.entropy.choice(nodes)) if busy else None
            unsent = UnsentRequest(request, node, lambda o, _: pending.complete(o), timeout_ms)
            engine.network.send(unsent, engine.clock.monotonic_ms())

        engine.submit(send)
        return pending

    def figures(self) -> dict[str, dict[str, float]]:
        """All metrics, by group and name."""
        figures = self.metrics.snapshot(
            max(self.subscription.lags().values(), default=float("nan"))
        )
        figures[COORDINATOR_GROUP] = {"assigned-partitions": len(self.subscription.assigned())}
        if self._classic is not None and self._commits is not None:
            heartbeat = self._classic.heartbeat
            now_ms = self.engine.clock.monotonic_ms()
            received_at_ms = heartbeat.received_at_ms
            figures[COORDINATOR_GROUP] |= {
                "commit-total": self._commits.commit_total,
                "heartbeat-total": heartbeat.sent_total,
                "last-heartbeat-seconds-ago": (
                    -1.0 if received_at_ms is None else (now_ms - received_at_ms) / 1000
                ),
                "rebalance-total": self._classic.rebalance_total,
            }
        return figures

    def _no_group(self) -> KafkaError:
        return IllegalStateError("offsets are committed to a group: give the consumer a group_id")
