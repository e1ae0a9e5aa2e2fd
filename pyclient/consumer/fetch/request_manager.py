"""Sends fetch requests ahead of the program's polls. The I/O thread only.

One request per broker at a time, with all partitions that it leads. The next request is sent as
soon as the response is here, from where its last batch ends, whether or not the program has read
it, as long as the fetch buffer has room.

A broker holds a fetch until it has data, up to `fetch.max.wait.ms`, and delays everything behind it
on the connection. A partition that is sought or assigned meanwhile is fetched *aside*, on a
connection of its own, in a request that waits as well: so every fetchable partition is in a fetch
that is in flight, and its records come at once. A fetch aside waits only shortly, because what is
sought next has to wait for its end. When nothing flows, the next fetch takes its partitions in.
"""

import logging
import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

from pyclient.consumer.cluster import Cluster
from pyclient.consumer.fetch.aborted import AbortedTransactions
from pyclient.consumer.fetch.buffer import FetchBuffer
from pyclient.consumer.fetch.completed_fetch import (
    CompletedFetch,
    ResponseMemory,
    next_fetch_offset,
)
from pyclient.consumer.fetch.read_replicas import ReadReplicas
from pyclient.consumer.fetch.session import FetchSession, SessionPartition
from pyclient.consumer.health.fetch_watch import FetchWatch
from pyclient.consumer.inbox import Inbox
from pyclient.consumer.metrics import ConsumerMetrics
from pyclient.consumer.partition_state import FetchTarget, PartitionEpoch, PartitionOffsets
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.error_codes import NONE, for_code
from pyclient.errors import (
    CorruptRecordError,
    KafkaError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    UnknownLeaderEpochError,
    UnknownServerError,
    UnsupportedVersionError,
)
from pyclient.net.request_manager import (
    Outcome,
    PollResult,
    UnsentRequest,
    aside_connection,
)
from pyclient.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from pyclient.timers import ExponentialBackoff
from pyclient.types import BrokerMetadata, TopicPartition

log = logging.getLogger(__name__)

READ_COMMITTED = 1
_NO_RECORDS = memoryview(b"")
_NO_REPLICA = -1
_ASIDE_WAIT_MS = 20
"""How long a broker may hold a fetch aside."""


_CHOSEN_BYTES = 4 << 20
_CHOSEN_BYTES_MAX = 8 << 20
"""A response of about 4 MB costs the least CPU per record: smaller ones cost more system calls and
turns, larger ones fall out of the processor's cache before they are decoded."""


class FetchOptions(NamedTuple):
    """The part of a consumer's configuration that fetching needs.

    Without `exact_sizes` the manager asks for less than `max_bytes`, and for more than
    `max_partition_bytes` where a broker leads few partitions, within `buffer_bytes`.
    """

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    max_partition_bytes: int = 1_048_576
    exact_sizes: bool = True
    buffer_bytes: int = 52_428_800
    isolation_level: int = 0
    check_crcs: bool = True
    use_sessions: bool = True
    rack_id: str = ""
    read_replica_ms: float = 300_000


class _Route(NamedTuple):
    """The first connection to a broker, or the one for fetches aside."""

    node: int
    is_aside: bool

    @property
    def connection(self) -> int:
        return aside_connection(self.node) if self.is_aside else self.node


class _Plan(NamedTuple):
    """All that a broker is asked for, while nothing but fetch offsets changes."""

    versions: tuple[int, int]  # of the subscription and the metadata
    targets: dict[TopicPartition, FetchTarget]


class FetchRequestManager:
    """Keeps a fetch in flight to every broker that leads a fetchable partition."""

    def __init__(
        self,
        options: FetchOptions,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        cluster: Cluster,
        backoff: ExponentialBackoff,
        inbox: Inbox,
        metrics: ConsumerMetrics,
        watch: FetchWatch,
    ) -> None:
        self._options = options
        self._subscription = subscription
        self._buffer = buffer
        self._cluster = cluster
        self._backoff = backoff
        self._inbox = inbox
        self._metrics = metrics
        self._watch = watch
        self._replicas = ReadReplicas(options.read_replica_ms)
        self._sessions: dict[int, FetchSession] = {}
        self._in_flight: dict[int, Mapping[TopicPartition, FetchTarget]] = {}
        self._failures: dict[int, int] = {}  # in a row, by node
        self._rests_until: dict[int | TopicPartition, float] = {}  # after an error
        self._merging: set[int] = set()  # nodes whose fetch waits for the one aside
        self._plans: dict[int, _Plan] = {}  # by node
        self._advanced: dict[int, list[FetchTarget]] = {}  # since its last request, by node
        self._answered: list[int] = []  # connections, since the last look
        self._looked_at: tuple[int, int] | None = None  # versions; None: look at all partitions
        self._answers = 0
        self._seen: object = None

    def renew_session(self, partition: TopicPartition) -> None:
        """Have the next fetch from its broker name all partitions: the broker forgot this one."""
        for session in self._sessions.values():
            if partition in session.partitions:
                session.renew()

    def poll(self, now_ms: float) -> PollResult:
        """The fetches to send now."""
        versions = (self._subscription.version, self._cluster.snapshot.version)
        seen = (versions, self._answers)
        wake_at_ms = self._end_rests(now_ms)
        if seen == self._seen:
            return PollResult((), wake_at_ms)
        self._watch.is_full = not self._buffer.has_room()
        if self._watch.is_full:
            return PollResult((), wake_at_ms)  # reading from the buffer wakes the loop
        self._seen = seen
        answered, self._answered = self._answered, []
        if versions == self._looked_at and all(
            self._is_planned(node, versions) for node in answered
        ):
            requests = [self._continued(node, now_ms) for node in answered]
        else:
            self._looked_at = versions
            requests = self._planned(versions, now_ms)
        return PollResult(requests, wake_at_ms)

    def _is_planned(self, node: int, versions: tuple[int, int]) -> bool:
        """Whether the next fetch differs from the last one by its offsets alone."""
        plan = self._plans.get(node)
        return (
            plan is not None
            and plan.versions == versions
            and node not in self._in_flight
            and self._sessions[node].takes_changes
        )

    def _continued(self, node: int, now_ms: float) -> UnsentRequest:
        """The next fetch by a plan. Its cost does not grow with the partitions that rest."""
        targets = self._plans[node].targets
        advanced = self._advanced.pop(node, [])
        targets.update({target.partition: target for target in advanced})
        request = self._new_request(len(targets), is_aside=False)
        session = self._sessions[node]
        session.fill_changes(request, self._session_partitions(advanced, len(targets)))
        return self._sent(request, _Route(node, is_aside=False), session, targets, now_ms)

    def _planned(self, versions: tuple[int, int], now_ms: float) -> list[UnsentRequest]:
        """Fetches of everything that is not asked for, and plans for the next ones."""
        wanted, is_whole = self._by_route(now_ms)
        requests = []
        for route, targets in wanted.items():
            if not route.is_aside:
                self._advanced.pop(route.node, None)
                self._plans.pop(route.node, None)
                if is_whole:
                    self._plans[route.node] = _Plan(versions, targets)
            requests.append(self._request(route, targets, now_ms))
        if not is_whole:
            self._plans.clear()
        return requests

    def close(self, error: KafkaError) -> None:  # noqa: ARG002  the engine tells who asks
        """Drop what was fetched, and wake the caller's thread."""
        self._buffer.clear()
        self._inbox.ring()

    def _end_rests(self, now_ms: float) -> float:
        """Drop the back-offs that are over; returns when the next one ends."""
        over = [what for what, until_ms in self._rests_until.items() if until_ms <= now_ms]
        for what in over:
            del self._rests_until[what]
            self._seen = None
            self._looked_at = None
        return min(self._rests_until.values(), default=math.inf)

    def _by_route(
        self, now_ms: float
    ) -> tuple[dict[_Route, dict[TopicPartition, FetchTarget]], bool]:
        """What to fetch now, on each connection that has no fetch in flight.

        And whether that is all there is: no partition rests, has no leader, is read from another
        replica, or is asked for elsewhere than on the first connection to its leader.
        """
        snapshot = self._cluster.snapshot
        wanted: dict[_Route, dict[TopicPartition, FetchTarget]] = {}
        leaderless = False
        is_whole = not self._rests_until
        for target in self._subscription.fetchable():
            leader = snapshot.leader_for_partition(target.partition)
            if leader is None:
                leaderless = True
                continue
            asked = self._asked_on(target)
            if asked is None and target.partition not in self._rests_until:
                node = self._replicas.node_for(target.partition, leader, snapshot, now_ms)
                route = _Route(node, is_aside=node in self._in_flight)
                connection = route.connection
                if connection not in self._in_flight and connection not in self._rests_until:
                    wanted.setdefault(route, {})[target.partition] = target
                is_whole = is_whole and node == leader and not route.is_aside
            elif asked != leader:
                is_whole = False
        if leaderless:
            self._cluster.request_update()
        return wanted, is_whole and not leaderless

    def _asked_on(self, target: FetchTarget) -> int | None:
        """The connection on which a fetch is in flight for it, possibly to a former leader."""
        for connection, targets in self._in_flight.items():
            asked = targets.get(target.partition)
            if asked is not None and asked.epoch == target.epoch:
                return connection
        return None

    def _request(
        self, route: _Route, targets: Mapping[TopicPartition, FetchTarget], now_ms: float
    ) -> UnsentRequest:
        connection = route.connection
        if route.is_aside:
            session = FetchSession(connection, enabled=False)
        else:
            session = self._sessions.setdefault(
                connection, FetchSession(connection, self._options.use_sessions)
            )
        request = self._new_request(len(targets), route.is_aside)
        session.fill(request, self._session_partitions(targets.values(), len(targets)))
        return self._sent(request, route, session, targets, now_ms)

    def _new_request(self, partitions: int, is_aside: bool) -> FetchRequest:
        options = self._options
        max_wait_ms = min(options.max_wait_ms, _ASIDE_WAIT_MS) if is_aside else options.max_wait_ms
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=self._sizes(partitions)[0],
            isolation_level=options.isolation_level,
            rack_id=options.rack_id,
        )

    def _sizes(self, partitions: int) -> tuple[int, int]:
        """How many bytes to ask a broker for, in all and of each of so many partitions."""
        options = self._options
        if options.exact_sizes:
            return options.max_bytes, options.max_partition_bytes
        room = max(options.buffer_bytes, options.max_partition_bytes)
        max_bytes = min(_CHOSEN_BYTES_MAX, room, options.max_bytes)
        share = max(_CHOSEN_BYTES // partitions, options.max_partition_bytes)
        return max_bytes, min(share, max_bytes)

    def _sent(
        self,
        request: FetchRequest,
        route: _Route,
        session: FetchSession,
        targets: Mapping[TopicPartition, FetchTarget],
        now_ms: float,
    ) -> UnsentRequest:
        connection = route.connection
        self._in_flight[connection] = targets
        self._watch.on_sent(connection, targets.keys(), now_ms)
        self._metrics.fetch_sent()
        return UnsentRequest(request, connection, partial(self._on_done, route, session, now_ms))

    def _session_partitions(
        self, targets: Iterable[FetchTarget], partitions: int
    ) -> dict[TopicPartition, SessionPartition]:
        snapshot = self._cluster.snapshot
        max_partition_bytes = self._sizes(partitions)[1]
        return {
            partition: SessionPartition(
                snapshot.topic_id(partition.topic),
                fetch_offset,
                max_partition_bytes,
                snapshot.leader_epoch_for_partition(partition),
            )
            for partition, _, fetch_offset in targets
        }

    # --- answers -----------------------------------------------------------------------------

    def _on_done(
        self,
        route: _Route,
        session: FetchSession,
        sent_at_ms: float,
        outcome: Outcome,
        now_ms: float,
    ) -> None:
        node = route.connection
        targets = self._in_flight.pop(node)
        self._answers += 1
        self._answered.append(node)
        if route.is_aside and route.node in self._merging:
            self._merging.discard(route.node)
            self._rests_until.pop(route.node, None)
        if isinstance(outcome, KafkaError):
            session.on_failure()
            self._watch.on_failed(node, str(outcome), now_ms)
            for partition in targets:
                self._replicas.forget(partition)
            self._on_failure(node, outcome, now_ms)
            return
        assert isinstance(outcome, FetchResponse)
        if not session.on_response(outcome):
            self._watch.on_failed(node, "its answer leaves out what was asked for", now_ms)
            self._rest_node(node, now_ms)
            return
        self._failures.pop(node, None)
        self._watch.on_answered(node, now_ms)
        completed = []
        leaders = {}
        memory = ResponseMemory(0)
        for partition, data in session.answers(outcome):
            name = None if data.error_code == NONE else for_code(data.error_code).__name__
            self._watch.on_partition(partition, name, now_ms)
            if data.error_code != NONE:
                self._plans.pop(node, None)
            fetch = self._complete(targets[partition], data, memory, node, now_ms)
            if data.preferred_read_replica != _NO_REPLICA:
                snapshot = self._cluster.snapshot
                self._replicas.prefer(partition, data.preferred_read_replica, snapshot, now_ms)
                self._looked_at = None
            if fetch is not None:
                completed.append(fetch)
            if data.error_code != NONE and data.current_leader.leader_id >= 0:
                leader = data.current_leader
                leaders[partition] = (leader.leader_id, leader.leader_epoch)
        if leaders:  # KIP-951: a broker that no longer leads says who does
            endpoints = [
                BrokerMetadata(one.node_id, one.host, one.port, one.rack)
                for one in outcome.node_endpoints
            ]
            self._cluster.update_leaders(leaders, endpoints)
        size = sum(fetch.size for fetch in completed)
        self._metrics.fetch_done(size, now_ms - sent_at_ms, now_ms)
        memory.size = size
        if completed:
            self._buffer.put(completed)
        elif not route.is_aside:
            self._wait_for_aside(node, now_ms)

    def _wait_for_aside(self, node: int, now_ms: float) -> None:
        """Nothing flows: if a fetch aside is about to end, the next fetch has its partitions."""
        if aside_connection(node) in self._in_flight:
            self._merging.add(node)
            self._plans.pop(node, None)
            self._rests_until[node] = now_ms + 2 * _ASIDE_WAIT_MS

    def _on_failure(self, node: int, error: KafkaError, now_ms: float) -> None:
        log.info("a fetch from node %d failed: %s", node, error)
        self._rest_node(node, now_ms)
        if error.refresh_metadata:
            self._cluster.request_update()
        if isinstance(error, UnsupportedVersionError):
            self._rests_until[node] = math.inf
            self._inbox.post_error(error, partial(self._wake_node, node))

    def _rest_node(self, node: int, now_ms: float) -> None:
        failures = self._failures.get(node, 0)
        self._failures[node] = failures + 1
        self._plans.pop(node, None)
        self._rests_until[node] = now_ms + self._backoff.backoff_ms(failures)

    def _wake_node(self, node: int) -> None:
        self._rests_until[node] = 0.0

    def _complete(
        self,
        target: FetchTarget,
        data: PartitionData,
        memory: ResponseMemory,
        connection: int,
        now_ms: float,
    ) -> CompletedFetch | None:
        at = PartitionEpoch(target.partition, target.epoch)
        if data.error_code != NONE:
            return self._fail(target, for_code(data.error_code), now_ms)
        records = data.records or _NO_RECORDS
        assert isinstance(records, memoryview)  # what decoding gives
        next_offset = next_fetch_offset(records, target.fetch_offset)
        offsets = PartitionOffsets(
            data.high_watermark, data.last_stable_offset, data.log_start_offset
        )
        if not self._subscription.fetched(at, target.fetch_offset, next_offset, offsets):
            return None
        if not records:
            return None
        if next_offset != target.fetch_offset:
            if connection in self._plans:
                advanced = target._replace(fetch_offset=next_offset)
                self._advanced.setdefault(connection, []).append(advanced)
        else:
            # Not a whole batch: the caller's thread raises. Do not fetch it again until then.
            self._subscription.fail(at)
        aborted = None
        if self._options.isolation_level == READ_COMMITTED:
            aborted = AbortedTransactions(data.aborted_transactions or ())
        return CompletedFetch(
            at,
            target.fetch_offset,
            records,
            check_crcs=self._options.check_crcs,
            aborted=aborted,
            response=memory,
        )

    def _fail(
        self, target: FetchTarget, error: type[KafkaError], now_ms: float
    ) -> CompletedFetch | None:
        """Retry after the back-off, or pass the error to the caller's thread."""
        topic, partition = target.partition
        what = f"{topic}-{partition} at offset {target.fetch_offset}"
        follower = None
        if error is not UnknownLeaderEpochError:
            follower = self._replicas.forget(target.partition)
        for_caller = error in (OffsetOutOfRangeError, CorruptRecordError)
        if error is OffsetOutOfRangeError and follower is not None:
            # A follower may not have it yet, or any more; the leader knows.
            for_caller, error = False, OffsetNotAvailableError
        if for_caller or not (error.retriable or error is UnknownServerError):
            at = PartitionEpoch(target.partition, target.epoch)
            if not self._subscription.fail(at):
                return None
            return CompletedFetch(at, target.fetch_offset, error=error(f"fetching {what}"))
        level = logging.WARNING if error is UnknownServerError else logging.DEBUG
        log.log(level, "fetching %s failed, trying again: %s", what, error.__name__)
        self._rests_until[target.partition] = now_ms + self._backoff.backoff_ms(0)
        if error.refresh_metadata:
            self._cluster.request_update()
        return None
