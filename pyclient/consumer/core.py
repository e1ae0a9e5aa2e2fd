"""Wires the consumer's parts, and owns their lifecycle.

`KafkaConsumer` checks arguments and `PollLoop` runs the polls; both use the parts made here. The
caller's thread makes, starts and closes a core; its managers run on the I/O thread.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pyclient.config import plugins
from pyclient.config.consumer import reset_duration_ms
from pyclient.consumer.caller_requests import CallerRequests
from pyclient.consumer.caller_wait import CallerWait
from pyclient.consumer.fetch.buffer import FetchBuffer
from pyclient.consumer.fetch.collector import FetchCollector
from pyclient.consumer.fetch.request_manager import (
    READ_COMMITTED,
    FetchOptions,
    FetchRequestManager,
)
from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.consumer.group.membership import GroupMembership, RebalanceStep
from pyclient.consumer.group.poll_interval import PollTimer
from pyclient.consumer.group.protocols import MembershipParts, new_membership
from pyclient.consumer.group.solo import SoloMembership
from pyclient.consumer.health.fetch_watch import FetchWatch
from pyclient.consumer.health.monitor import HealthMonitor
from pyclient.consumer.inbox import Inbox
from pyclient.consumer.interceptors import ConsumerInterceptors
from pyclient.consumer.iteration import AttentionAlarm, RecordIterator
from pyclient.consumer.metrics import ConsumerMetrics
from pyclient.consumer.offsets.auto_commit import AutoCommit
from pyclient.consumer.offsets.commit import CommitManager, Offsets
from pyclient.consumer.offsets.commit_calls import CommitCalls
from pyclient.consumer.offsets.committed import CommittedOffsetManager
from pyclient.consumer.offsets.list_offsets import ListOffsetsManager
from pyclient.consumer.offsets.named_commits import NamedCommits
from pyclient.consumer.offsets.reset import OffsetResetManager, restart_recreated
from pyclient.consumer.offsets.validation import PositionValidator
from pyclient.consumer.partition_state import OffsetReset
from pyclient.consumer.rebalance import Rebalancer
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.consumer.topic_interest import TopicInterest
from pyclient.metadata import ClusterMetadata
from pyclient.net.engine import Engine
from pyclient.net.request_manager import aside_connection, coordinator_connection
from pyclient.serialization import deserializer
from pyclient.timers import ExponentialBackoff
from pyclient.types import TopicPartition

if TYPE_CHECKING:
    from pyclient.config.definition import Config
    from pyclient.net.environment import Environment

END_MS: Final = 1_000
"""How long the I/O thread may take to end, once it is told to."""

_RESETS: Final = {
    "earliest": OffsetReset.EARLIEST,
    "latest": OffsetReset.LATEST,
    "none": None,
}
_ISOLATION_LEVELS: Final = {"read_uncommitted": 0, "read_committed": READ_COMMITTED}


def _default_reset(name: str) -> OffsetReset | None:
    if name in _RESETS:
        return _RESETS[name]
    return OffsetReset.by_duration(reset_duration_ms(name))


class ConsumerCore:
    """One consumer's parts.

    Attributes:
        config, engine: the options; the I/O thread and its connections.
        subscription, inbox, metrics, poll_timer: shared by both threads.
        interceptors: called by the caller's thread.
        health: notices stalls; any thread may ask it.
        collector, iterator, rebalancer: used by the caller's thread alone.
        alarm: interrupts an iteration when something is due.
        wait, requests, commits, auto_commit: how the caller's thread waits, asks the I/O thread
            for something, and commits.
        membership: in the group, or alone. The I/O thread's; others may ask `has_left` and
            `metadata`.
    """

    def __init__(self, config: Config, client_id: str, environment: Environment | None) -> None:
        self.config = config
        self.client_id = client_id
        self.engine = engine = Engine(
            config,
            client_id=client_id,
            allow_auto_create_topics=config["allow.auto.create.topics"],
            environment=environment,
        )
        configured = config["interceptor.classes"]
        self.interceptors = ConsumerInterceptors(
            plugins.create("interceptor.classes", configured, config)
        )
        self.metrics = ConsumerMetrics(engine.clock)
        self.subscription = SubscriptionState(
            _default_reset(config["auto.offset.reset"]),
            config["isolation.level"] == "read_committed",
        )
        self.inbox = Inbox(engine.waiter, engine.submit)
        self.poll_timer = PollTimer(config["max.poll.interval.ms"])
        self.iterator = RecordIterator(self.subscription)
        self.inbox.on_post(self.iterator.interrupt)
        self.alarm = AttentionAlarm(self.iterator.interrupt)
        self.rebalancer = Rebalancer(self.subscription, lambda: self.auto_commit, self._report_step)
        self._buffer = FetchBuffer(config["fetch.buffer.bytes"], self.inbox.ring)
        self.collector = FetchCollector(
            self._buffer,
            self.subscription,
            self.metrics,
            engine.wake,
            deserializer(config["key.deserializer"]),
            deserializer(config["value.deserializer"]),
        )
        self._interest = TopicInterest(
            self.subscription, engine.metadata, self.inbox, config["exclude.internal.topics"]
        )
        self._fetch_watch = FetchWatch()
        self._fetches = self._fetch_manager()
        self._list_offsets = ListOffsetsManager(
            engine.metadata,
            self._backoff(),
            self.connection_for_lookups,
            _ISOLATION_LEVELS[config["isolation.level"]],
            config["request.timeout.ms"],
        )
        self.membership: GroupMembership
        self._coordinator: CoordinatorFinder | None = None
        self.wait = CallerWait(engine, self.inbox)
        # Requesters are polled before the managers that serve them.
        group_id: str | None = config["group.id"]
        if group_id is None:
            self.requests = self._work_alone()
        else:
            self.requests = self._work_in_group(group_id)
        engine.add_manager(
            OffsetResetManager(
                self.subscription,
                self._list_offsets,
                self.inbox,
                group_id is not None,
                engine.clock.now_ms,
            )
        )
        self.health = self._health_monitor(group_id)
        engine.add_manager(self.health)
        engine.add_manager(self._list_offsets)
        engine.add_manager(
            PositionValidator(
                self.subscription,
                engine.metadata,
                self._backoff(),
                self.inbox,
                self.connection_for_lookups,
            )
        )
        engine.add_manager(self._fetches)
        engine.add_manager(self.alarm)
        engine.metadata.add_listener(self._on_metadata)
        self.commits = CommitCalls(
            self.requests,
            self.wait,
            config["default.api.timeout.ms"],
            config["default.offset.commit.callback"],
            self.interceptors.on_commit,
        )
        self.auto_commit = AutoCommit(
            config["enable.auto.commit"],
            config["auto.commit.interval.ms"],
            config["retry.backoff.ms"],
            # Less than the others wait for this member, which would cost it the membership.
            min(config["default.api.timeout.ms"], config["max.poll.interval.ms"] * 2 / 3),
            engine.clock,
            self._positions,
            self.commits,
        )

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
                exact_sizes=config.is_explicit("fetch.max.bytes")
                or config.is_explicit("max.partition.fetch.bytes"),
                buffer_bytes=config["fetch.buffer.bytes"],
                isolation_level=_ISOLATION_LEVELS[config["isolation.level"]],
                check_crcs=config["check.crcs"],
                use_sessions=config["enable.incremental.fetch.sessions"],
                rack_id=config["client.rack"] or "",
                read_replica_ms=config["metadata.max.age.ms"],
            ),
            self.subscription,
            self._buffer,
            self.engine.metadata,
            self._backoff(),
            self.inbox,
            self.metrics,
            self._fetch_watch,
        )

    def _health_monitor(self, group_id: str | None) -> HealthMonitor:
        monitor = HealthMonitor(
            self.engine.clock,
            self.subscription,
            self.engine.metadata,
            self.membership,
            self._why_no_coordinator,
            self._fetch_watch,
            self._fetches,
            self._list_offsets,
            self.poll_timer,
            group_id,
            self.config["fetch.max.wait.ms"],
        )
        self.metrics.watch_health(monitor)
        return monitor

    def _why_no_coordinator(self) -> str | None:
        """Why committed offsets cannot be looked up; None if they can. Any thread."""
        coordinator = self._coordinator
        if coordinator is None or coordinator.connection is not None:
            return None
        return coordinator.describe()

    def _work_alone(self) -> CallerRequests:
        self.membership = SoloMembership(
            self.subscription,
            self.engine.metadata,
            self._interest,
            self.inbox,
            self.rebalancer.run,
        )
        self.engine.add_manager(self.membership)
        return self._requests(None, None)

    def _work_in_group(self, group_id: str) -> CallerRequests:
        config, engine = self.config, self.engine
        coordinator = CoordinatorFinder(group_id, engine.network, self._backoff(), self.inbox)
        self._coordinator = coordinator
        self.membership = membership = new_membership(
            MembershipParts(
                config,
                self.subscription,
                engine.metadata,
                self._interest,
                coordinator,
                self.poll_timer,
                self._backoff(),
                self.inbox,
                self.rebalancer.run,
            )
        )
        named_commits = NamedCommits()
        commits = CommitManager(
            group_id,
            coordinator,
            engine.metadata,
            self._backoff(),
            membership,
            named_commits,
        )
        committed = CommittedOffsetManager(
            group_id,
            coordinator,
            self.subscription,
            engine.metadata,
            self._backoff(),
            self.inbox,
            named_commits,
            membership,
        )
        for manager in (membership, commits, committed, coordinator):
            engine.add_manager(manager)
        self.metrics.watch_group(membership, commits)
        return self._requests(commits, committed)

    def _requests(
        self, commits: CommitManager | None, committed: CommittedOffsetManager | None
    ) -> CallerRequests:
        return CallerRequests(
            self.engine,
            self.inbox,
            self.subscription,
            self.membership,
            self._interest,
            self._list_offsets,
            self.connection_for_lookups,
            commits,
            committed,
        )

    # --- the I/O thread ----------------------------------------------------------------------

    def _on_metadata(self, snapshot: ClusterMetadata) -> None:
        restart_recreated(self.subscription, snapshot, self.inbox)
        self._interest.on_metadata(snapshot)
        self.membership.on_metadata(snapshot)

    def connection_for_lookups(self, node: int) -> int:
        """A connection without a waiting fetch or join in front of a request, if there is one."""
        network = self.engine.network
        connections = (node, coordinator_connection(node), aside_connection(node))
        return next((one for one in connections if not network.in_flight_count(one)), node)

    def why_no_position(self, partition: TopicPartition) -> str:
        """What stands in the way of a partition's position, as far as it is known. Any thread."""
        trouble = self._list_offsets.trouble(partition)
        if trouble is not None:
            return str(trouble)
        troubles = self.engine.network.troubles(self.engine.clock.monotonic_ms())
        if troubles or self._coordinator is None:
            return "; ".join(troubles) or "no broker has answered yet"
        return f"{self._coordinator.describe()} has not told the committed offset"

    # --- the caller's thread -----------------------------------------------------------------

    def _positions(self) -> Offsets:
        """What an automatic commit is made of."""
        self.iterator.settle()
        return self.subscription.positions()

    def _report_step(self, step: RebalanceStep) -> None:
        self.engine.submit(partial(self.membership.on_step_done, step))

    def start(self) -> None:
        """Start the I/O thread; wait for a first broker, unless `api.version` is given.

        Raises:
            NoBrokersAvailable: no broker answered in time.
        """
        self.engine.start()
        if self.config["api.version"] is None:
            try:
                self.engine.bootstrap(self.config["bootstrap.timeout.ms"])
            except BaseException:
                self.close(0)  # only attempts to connect are under way
                raise

    def close(self, timeout_ms: float) -> None:
        """End the I/O thread, which gets at least `END_MS` for it."""
        self.engine.close(max(timeout_ms, END_MS))
