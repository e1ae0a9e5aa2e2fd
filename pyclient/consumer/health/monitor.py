"""Notices stalls: each is logged with its reason once, and again when it ends.

Runs on the I/O thread as a request manager. It looks at most once a second, and wakes the loop only
if something could have stalled by then, or began to flow since the last look: an idle client stays
idle.
`health` may be called by any thread, also while the I/O thread is stuck: it reads what is replaced
whole.

A broker that leaves a partition out of its fetch session looks like one without new records. So
partitions that no response has mentioned for a while are looked up by ListOffsets, a bounded number
at a time; if there are records that do not come, the session is renewed.
"""

import logging
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, Protocol

from pyclient.clock import Clock
from pyclient.consumer.cluster import Cluster
from pyclient.consumer.group.membership import GroupMembership, MembershipStatus
from pyclient.consumer.group.poll_interval import PollTimer
from pyclient.consumer.health.diagnosis import Diagnosis, diagnose
from pyclient.consumer.health.fetch_watch import FetchWatch
from pyclient.consumer.health.report import (
    ConsumerHealth,
    MembershipHealth,
    PartitionHealth,
    Stall,
)
from pyclient.consumer.offsets.list_offsets import LATEST, FoundOffset, ListOffsetsManager
from pyclient.consumer.partition_state import PartitionEpoch, PartitionFacts
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.errors import KafkaError
from pyclient.net.request_manager import NOTHING_TO_DO, PollResult
from pyclient.types import TopicPartition

log = logging.getLogger(__name__)

STALLED_AFTER_MS: Final = 5_000
_LOOK_EVERY_MS: Final = 1_000
_LOOK_AT_MANY_EVERY_MS: Final = 2_500
"""Sooner, as for few partitions, if something could have stalled by then."""
_LOOK_AT_EACH_EVERY_MS: Final = 10_000
"""How often each of many partitions is looked at while all of their fetches are answered."""
_MANY: Final = 1_000
_NEXT_FETCH_WITHIN_MS: Final = 250
"""How long after an answer the next fetch may leave: by then it is known who does not answer."""
_SILENT_AFTER_MS: Final = 4_000
_LOOK_UP_EVERY_MS: Final = 6_000
_LOOKUPS_MAX: Final = 1_000
_LOOKUP_TIMEOUT_MS: Final = 10_000
_MEMBERSHIP: Final = "the membership"


class FetchSessions(Protocol):
    """What the monitor asks of the fetches."""

    def renew_session(self, partition: TopicPartition) -> None:
        """Have the next fetch from the partition's broker name all partitions."""


class _Seen(NamedTuple):
    """What the monitor last saw of a partition."""

    epoch: int
    state: str
    since_ms: float  # in this state
    flowed_at_ms: float  # when it was last as it should be


class _Flow(NamedTuple):
    """What is fetched while all partitions flow: if that stays, so do they."""

    subscription_version: int
    metadata_version: int
    answered: Mapping[int, int]  # partitions of the last fetch, by connection; recent ones only


class _Expected(NamedTuple):
    """What decides which partitions should flow, and what the membership waits for."""

    subscription_version: int
    metadata_version: int
    is_full: bool
    fetches_in_flight: int
    is_settled: bool
    coordinator: str | None


class HealthMonitor:
    """Watches one consumer."""

    def __init__(
        self,
        clock: Clock,
        subscription: SubscriptionState,
        cluster: Cluster,
        membership: GroupMembership,
        coordinator: Callable[[], str | None],
        watch: FetchWatch,
        sessions: FetchSessions,
        list_offsets: ListOffsetsManager,
        poll_timer: PollTimer,
        group_id: str | None,
        fetch_wait_ms: float,
    ) -> None:
        """`coordinator` tells why there is none, if one is needed."""
        self._clock = clock
        self._subscription = subscription
        self._cluster = cluster
        self._membership = membership
        self._coordinator = coordinator
        self._watch = watch
        self._sessions = sessions
        self._list_offsets = list_offsets
        self._poll_timer = poll_timer
        self._group_id = group_id
        self._fetch_patience_ms = fetch_wait_ms + STALLED_AFTER_MS
        self._looked_at_ms = -math.inf
        self._wake_at_ms = math.inf
        self._seen: dict[TopicPartition, _Seen] = {}
        self._settled_at_ms: float | None = None
        self._left_out: dict[TopicPartition, _LeftOut] = {}
        self._looked_at_each_ms = -math.inf
        self._expected_at_look: _Expected | None = None
        self._flow: _Flow | None = None  # None: not all partitions flowed at the last look
        self._stalls: Mapping[str, tuple[float, str]] = {}  # since, reason; replaced whole

    # --- the I/O thread ----------------------------------------------------------------------

    def poll(self, now_ms: float) -> PollResult:
        """Look whether all goes on; sends nothing itself."""
        if not self._subscription.has_any():
            self._settled_at_ms = None
            if self._stalls:
                self._report({}, now_ms)
            return NOTHING_TO_DO
        is_many = len(self._seen) > _MANY
        look_every_ms = _LOOK_AT_MANY_EVERY_MS if is_many else _LOOK_EVERY_MS
        soon_ms = self._looked_at_ms + look_every_ms
        if self._wake_at_ms > soon_ms and self._expected() != self._expected_at_look:
            # What the last look did not know of may stall earlier than it said.
            self._wake_at_ms = soon_ms
        due_ms = max(self._wake_at_ms, self._looked_at_ms + _LOOK_EVERY_MS)
        if now_ms >= min(due_ms, soon_ms):  # as the loop has turned anyway
            self._looked_at_ms = now_ms
            self._expected_at_look = self._expected()
            self._wake_at_ms = self._look(now_ms)
            if self._stalls:  # they may end any time
                self._wake_at_ms = now_ms + look_every_ms
            due_ms = max(self._wake_at_ms, now_ms + _LOOK_EVERY_MS)
        return PollResult((), due_ms)

    def close(self, error: KafkaError) -> None:
        """Nothing waits here."""

    def _look(self, now_ms: float) -> float:
        """Find the stalls; return when to look again even if nothing else happens until then."""
        stalls: dict[str, tuple[float, str]] = {}
        status = self._membership.status()
        membership = self._membership_stall(status, now_ms)
        if membership is not None:
            stalls[_MEMBERSHIP] = membership
        elif self._still_flows(now_ms):
            oldest_ms = min(
                event.at_ms
                for connection, event in self._watch.answered.items()
                if self._flow is not None and connection in self._flow.answered
            )
            return min(
                self._membership_patience_ends_ms(status), oldest_ms + self._fetch_patience_ms
            )
        self._looked_at_each_ms = now_ms
        flow: _Flow | None = self._present_flow(now_ms)
        facts = self._subscription.facts()
        self._watch.keep({one.partition for one in facts})
        self._left_out = {
            one.partition: found
            for one in facts
            if (found := self._left_out.get(one.partition)) is not None
            and found.at.epoch == one.epoch
        }
        seen: dict[TopicPartition, _Seen] = {}
        silent = []
        next_stall_ms = self._membership_patience_ends_ms(status)
        for one in facts:
            diagnosis = self._diagnose(one, now_ms)
            if diagnosis.reason is not None:  # it does not flow, or should not
                flow = None
            now_seen = self._update(one, diagnosis, now_ms)
            seen[one.partition] = now_seen
            if diagnosis.should_flow:
                patience_ends_ms = now_seen.flowed_at_ms + self._patience_ms(one)
                next_stall_ms = min(next_stall_ms, patience_ends_ms)
            stall = self._partition_stall(one, diagnosis, now_seen, now_ms)
            if stall is not None:
                stalls[_name(one.partition)] = stall
            elif diagnosis.should_flow and self._is_silent(one, now_ms):
                silent.append(one)
        self._seen = seen
        is_all = flow is not None and sum(flow.answered.values()) == len(facts) > _MANY
        self._flow = flow if is_all and not stalls else None
        self._look_up(silent, now_ms)
        self._report(stalls, now_ms)
        return next_stall_ms

    def _expected(self) -> _Expected:
        status = self._membership.status()
        return _Expected(
            self._subscription.version,
            self._cluster.snapshot.version,
            self._watch.is_full,
            len(self._watch.in_flight),
            status.is_settled,
            status.coordinator,
        )

    def _present_flow(self, now_ms: float) -> _Flow:
        answered = {
            connection: len(event.partitions)
            for connection, event in self._watch.answered.items()
            if now_ms - event.at_ms < STALLED_AFTER_MS
        }
        return _Flow(self._subscription.version, self._cluster.snapshot.version, answered)

    def _still_flows(self, now_ms: float) -> bool:
        """Whether all of many partitions flow as at the last look, by their connections alone."""
        watch = self._watch
        return (
            self._flow is not None
            and now_ms - self._looked_at_each_ms < _LOOK_AT_EACH_EVERY_MS
            and not (watch.node_failures or watch.partition_failures or watch.is_full)
            and self._flow == self._present_flow(now_ms)
        )

    def _diagnose(self, facts: PartitionFacts, now_ms: float) -> Diagnosis:
        return diagnose(
            facts,
            self._cluster.snapshot,
            self._watch,
            self._coordinator() if facts.position is None else None,
            now_ms,
            self._fetch_patience_ms,
        )

    def _update(self, facts: PartitionFacts, diagnosis: Diagnosis, now_ms: float) -> _Seen:
        before = self._seen.get(facts.partition)
        if before is None or before.epoch != facts.epoch:
            since_ms = flowed_at_ms = now_ms
            if before is not None and before.state == diagnosis.state:
                since_ms, flowed_at_ms = before.since_ms, before.flowed_at_ms
        else:
            since_ms = before.since_ms if before.state == diagnosis.state else now_ms
            flowed_at_ms = before.flowed_at_ms
        if not diagnosis.should_flow:
            flowed_at_ms = now_ms
        elif facts.position is not None:
            answered_at_ms = self._watch.answered_at_ms(facts.partition)
            flowed_at_ms = max(flowed_at_ms, answered_at_ms or 0.0)
        return _Seen(facts.epoch, diagnosis.state, since_ms, flowed_at_ms)

    def _partition_stall(
        self, facts: PartitionFacts, diagnosis: Diagnosis, seen: _Seen, now_ms: float
    ) -> tuple[float, str] | None:
        if not diagnosis.should_flow:
            return None
        left_out = self._left_out.get(facts.partition)
        if left_out is not None and facts.fetch_offset < left_out.end_offset:
            self._sessions.renew_session(facts.partition)
            return left_out.since_ms, left_out.reason
        if now_ms - seen.flowed_at_ms < self._patience_ms(facts):
            return None
        return seen.flowed_at_ms, diagnosis.reason or "no fetch of it was answered"

    def _patience_ms(self, facts: PartitionFacts) -> float:
        """How long a partition may bring nothing before that counts as a stall."""
        if facts.position is None:
            return STALLED_AFTER_MS
        return self._fetch_patience_ms + _NEXT_FETCH_WITHIN_MS

    def _membership_patience_ends_ms(self, status: MembershipStatus) -> float:
        """When the membership counts as stalled if nothing is heard until then."""
        if not status.is_settled:
            return (self._settled_at_ms or 0.0) + STALLED_AFTER_MS
        if not status.needs_coordinator:
            return math.inf
        if status.coordinator is None:
            return status.coordinator_since_ms + STALLED_AFTER_MS
        heard_at_ms = max(status.last_heartbeat_at_ms or 0.0, status.since_ms)
        return heard_at_ms + status.heartbeat_interval_ms + STALLED_AFTER_MS + 1

    def _membership_stall(
        self, status: MembershipStatus, now_ms: float
    ) -> tuple[float, str] | None:
        """Why the membership does not get on, and since when; None if it does."""
        if self._settled_at_ms is None or status.is_settled or status.awaits_program:
            self._settled_at_ms = now_ms
        if not status.is_settled:
            if now_ms - self._settled_at_ms < STALLED_AFTER_MS:
                return None
            return self._settled_at_ms, f"it waits for {status.waits_for}"
        if status.needs_coordinator:
            if status.coordinator is None and now_ms - status.coordinator_since_ms >= (
                STALLED_AFTER_MS
            ):
                return status.coordinator_since_ms, self._coordinator() or "no coordinator"
            heard_at_ms = max(status.last_heartbeat_at_ms or 0.0, status.since_ms)
            if now_ms - heard_at_ms > status.heartbeat_interval_ms + STALLED_AFTER_MS:
                return heard_at_ms, f"{status.coordinator} does not answer heartbeats"
        return None

    def _report(self, stalls: Mapping[str, tuple[float, str]], now_ms: float) -> None:
        before, self._stalls = self._stalls, stalls
        for what, (since_ms, reason) in stalls.items():
            if what not in before:
                age_s = (now_ms - since_ms) / 1000
                log.warning("%s%s is stalled for %.0f s: %s", self._prefix(), what, age_s, reason)
        for what, (since_ms, _) in before.items():
            if what not in stalls:
                age_s = (now_ms - since_ms) / 1000
                log.warning("%s%s goes on after %.0f s", self._prefix(), what, age_s)

    def _prefix(self) -> str:
        return "" if self._group_id is None else f"group {self._group_id}: "

    # --- partitions that are left out of a fetch session -------------------------------------

    def _is_silent(self, facts: PartitionFacts, now_ms: float) -> bool:
        mentioned_at_ms = self._watch.mentioned.get(facts.partition)
        return mentioned_at_ms is not None and now_ms - mentioned_at_ms >= _SILENT_AFTER_MS

    def _look_up(self, silent: list[PartitionFacts], now_ms: float) -> None:
        # Those that were looked up longest ago come first.
        silent.sort(key=lambda one: self._looked_up_ms(one.partition))
        for one in silent[:_LOOKUPS_MAX]:
            if now_ms - self._looked_up_ms(one.partition) < _LOOK_UP_EVERY_MS:
                break
            at = PartitionEpoch(one.partition, one.epoch)
            self._left_out[one.partition] = _LeftOut(at, -1, now_ms, "")
            self._list_offsets.lookup(
                one.partition,
                LATEST,
                partial(self._on_end_offset, at, one.fetch_offset),
                now_ms + _LOOKUP_TIMEOUT_MS,
            )

    def _looked_up_ms(self, partition: TopicPartition) -> float:
        found = self._left_out.get(partition)
        return -math.inf if found is None else found.since_ms

    def _on_end_offset(self, at: PartitionEpoch, fetch_offset: int, found: FoundOffset) -> None:
        if found is None or isinstance(found, KafkaError) or found.offset <= fetch_offset:
            return
        before = self._left_out.get(at.partition)
        if before is None or before.at != at:
            return
        reason = (
            f"its log ends at {found.offset}, and fetches at {fetch_offset} bring nothing: the "
            "broker has left it out of the fetch session"
        )
        self._left_out[at.partition] = before._replace(end_offset=found.offset, reason=reason)
        # Looked at again in a second: a fetch that is on its way may bring the records.
        self._flow, self._wake_at_ms = None, self._looked_at_ms + _LOOK_EVERY_MS

    # --- any thread --------------------------------------------------------------------------

    @property
    def stall_total(self) -> int:
        """How many things are stalled now."""
        return len(self._stalls)

    def health(self) -> ConsumerHealth:
        """What the consumer is doing now."""
        now_ms = self._clock.monotonic_ms()
        lags = self._subscription.lags()
        partitions = {
            one.partition: self._partition_health(one, lags.get(one.partition), now_ms)
            for one in self._subscription.facts()
        }
        stalls = tuple(
            Stall(what, reason, (now_ms - since_ms) / 1000)
            for what, (since_ms, reason) in self._stalls.items()
        )
        return ConsumerHealth(self._membership_health(now_ms), partitions, stalls)

    def _partition_health(
        self, facts: PartitionFacts, lag: int | None, now_ms: float
    ) -> PartitionHealth:
        diagnosis = self._diagnose(facts, now_ms)
        seen = self._seen.get(facts.partition)
        since_ms = now_ms if seen is None or seen.state != diagnosis.state else seen.since_ms
        reason = diagnosis.reason
        stall = self._stalls.get(_name(facts.partition))
        if reason is None and stall is not None:
            reason = stall[1]
        return PartitionHealth(
            diagnosis.state,
            reason,
            (now_ms - since_ms) / 1000,
            facts.position,
            lag,
            self._cluster.snapshot.leader_for_partition(facts.partition),
            _seconds_ago(self._watch.answered_at_ms(facts.partition), now_ms),
        )

    def _membership_health(self, now_ms: float) -> MembershipHealth:
        status, member = self._membership.status(), self._membership.metadata()
        return MembershipHealth(
            self._group_id,
            member.member_id,
            member.generation_id,
            status.state,
            (now_ms - status.since_ms) / 1000,
            status.waits_for,
            status.coordinator,
            _seconds_ago(status.last_heartbeat_at_ms, now_ms),
            _seconds_ago(self._poll_timer.polled_at_ms, now_ms),
        )


class _LeftOut(NamedTuple):
    """A partition that was looked up, and may be left out of its fetch session."""

    at: PartitionEpoch
    end_offset: int  # -1: nothing is wrong, as far as is known
    since_ms: float
    reason: str


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _seconds_ago(at_ms: float | None, now_ms: float) -> float | None:
    return None if at_ms is None else (now_ms - at_ms) / 1000
