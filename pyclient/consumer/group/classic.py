"""Membership by Kafka's classic protocol: join, sync, heartbeat, leave.

The I/O thread only. All that changes the state is here; `member_state.py` has the table of the
changes that are allowed. The assignors decide how it rebalances. Eager: it gives up all its
partitions before it joins again. Cooperative (KIP-429): it keeps them, tells the leader so, gives
up what the new assignment leaves out, and joins once more, so that others get it.

The program's code, its listener and assignors, never runs here: `RebalanceStep`s have the
caller's thread run it inside a poll, while heartbeats go on.
"""

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial

from pyclient import types
from pyclient.consumer.cluster import Cluster
from pyclient.consumer.group.assignors import (
    AbstractPartitionAssignor,
    RebalanceProtocol,
    rebalance_protocol,
)
from pyclient.consumer.group.consumer_protocol import decode_assignment
from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.consumer.group.heartbeat import Heartbeat
from pyclient.consumer.group.leader import GroupLeader
from pyclient.consumer.group.member import Generation, GroupOptions, Member, failure_of
from pyclient.consumer.group.member_state import (
    BETWEEN_GENERATIONS,
    IN_SESSION,
    PROGRAM_IS_DUE,
    TRANSITIONS,
    WAITS_FOR,
    MemberState,
)
from pyclient.consumer.group.membership import (
    GroupMembership,
    MembershipFigures,
    MembershipStatus,
    RebalanceStep,
    StepKind,
)
from pyclient.consumer.group.next_join import NextJoin
from pyclient.consumer.group.poll_interval import PollTimer
from pyclient.consumer.group.program_work import (
    LedRebalance,
    assign,
    assignor_failed,
    lead,
    prepare_join,
)
from pyclient.consumer.inbox import Inbox
from pyclient.consumer.offsets.commit import (
    Committer,
    commit_failed,
    in_rebalance,
    not_a_member,
)
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.consumer.topic_interest import TopicInterest
from pyclient.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    KafkaError,
    MemberIdRequiredError,
    ProtocolError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.metadata import ClusterMetadata
from pyclient.net.request_manager import Outcome, PollResult, UnsentRequest
from pyclient.protocol.messages.join_group import JoinGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupRequestAssignment, SyncGroupResponse
from pyclient.timers import ExponentialBackoff
from pyclient.types import TopicPartition

log = logging.getLogger(__name__)

_NO_LONGER_THIS_MEMBER = (UnknownMemberIdError, IllegalGenerationError, FencedInstanceIdError)
# What a refused commit may say about the member; all else it says is about the commit.
_ABOUT_MEMBER = (RebalanceInProgressError, *_NO_LONGER_THIS_MEMBER)


class ClassicMembership(GroupMembership):
    """A member of a classic group. See `membership.GroupMembership`."""

    def __init__(
        self,
        options: GroupOptions,
        assignors: Sequence[AbstractPartitionAssignor],
        subscription: SubscriptionState,
        cluster: Cluster,
        interest: TopicInterest,
        coordinator: CoordinatorFinder,
        poll_timer: PollTimer,
        backoff: ExponentialBackoff,
        inbox: Inbox,
        run_step: Callable[[RebalanceStep], bool],
    ) -> None:
        """`run_step` does a step, on the caller's thread, and reports it to `on_step_done`."""
        self._options = options
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._protocol = rebalance_protocol(assignors)
        self._subscription = subscription
        self._cluster = cluster
        self._interest = interest
        self._coordinator = coordinator
        self._poll_timer = poll_timer
        self._backoff = backoff
        self._inbox = inbox
        self._run_step = run_step
        self._member = Member(options, self._assignors)
        self._state = MemberState.LEFT
        self._since_ms = 0.0  # in this state
        self._now_ms = 0.0  # of the last turn
        self._leader: GroupLeader | None = None
        self._leader_waits_for: int | None = None  # a snapshot after this version, to assign by
        self._step: RebalanceStep | None = None
        self._attempt = 0  # tells the answers to this join from those to earlier ones
        self._next_join = NextJoin(backoff, inbox)
        self._is_leaving = False
        self._outbox: list[UnsentRequest] = []
        self._heartbeat = Heartbeat(options.heartbeat_interval_ms, options.session_timeout_ms)
        self._rebalance_total = 0
        self._failed_total = 0
        # One attribute, for other threads: a store is atomic.
        self._standing: Committer | Callable[[], KafkaError] = not_a_member

    # --- what others ask and say -------------------------------------------------------------

    @property
    def state(self) -> MemberState:
        """The state of the member."""
        return self._state

    def metadata(self) -> types.ConsumerGroupMetadata:
        """A snapshot for the program. Any thread."""
        state = self._state
        if self._member.generation is None or state is MemberState.LEFT:
            return self._member.metadata(types.MemberState.UNJOINED)
        is_stable = state is MemberState.STABLE
        return self._member.metadata(
            types.MemberState.STABLE if is_stable else types.MemberState.REBALANCING
        )

    def figures(self) -> MembershipFigures:
        """What it has counted. Any thread."""
        return MembershipFigures(
            self._heartbeat.sent_total,
            self._heartbeat.received_at_ms,
            self._rebalance_total,
            self._failed_total,
        )

    def status(self) -> MembershipStatus:
        """What it is doing. Any thread."""
        state = self._state
        return MembershipStatus(
            state.value,
            self._since_ms,
            is_settled=state in (MemberState.STABLE, MemberState.LEFT),
            waits_for=self._waits_for(state),
            awaits_program=state in PROGRAM_IS_DUE,
            coordinator=self._coordinator.address,
            coordinator_since_ms=self._coordinator.since_ms,
            needs_coordinator=state is MemberState.STABLE,
            last_heartbeat_at_ms=self._heartbeat.received_at_ms,
            heartbeat_interval_ms=self._options.heartbeat_interval_ms,
        )

    def _waits_for(self, state: MemberState) -> str | None:
        if state is MemberState.UNJOINED:
            if not self._poll_timer.is_running:
                return "the first poll"
            if self._next_join.is_blocked:
                return "the next poll, which raises the error that stopped the membership"
            if not self._interest.is_resolved():
                return "a list of all topics, to match the pattern with"
            if self._coordinator.address is None:
                return f"the coordinator ({self._coordinator.describe()})"
            return f"the next attempt to join ({self._next_join.reason})"
        if state is MemberState.LEADING and self._leader_waits_for is not None:
            return "metadata of the topics that the group's members read"
        return WAITS_FOR.get(state)

    def committer(self) -> Committer | KafkaError:
        """The member that commits, or the error that prevents commits. Any thread."""
        if not self._subscription.has_auto_assigned_partitions():
            return Committer()
        standing = self._standing
        return standing if isinstance(standing, Committer) else standing()

    def on_commit_error(self, error: KafkaError, committer: Committer) -> KafkaError | Committer:
        """The coordinator refused a commit: what to report."""
        is_current = committer == self._member.committer()
        if isinstance(error, _ABOUT_MEMBER) and is_current and self._is_in_session():
            self._on_member_error(error)
        if isinstance(error, FencedInstanceIdError) and is_current:
            return error
        if not isinstance(error, _NO_LONGER_THIS_MEMBER):
            return error
        if not is_current and self._state in BETWEEN_GENERATIONS:
            return in_rebalance()
        return commit_failed(error)

    def on_subscription(self) -> None:
        """The subscription changed."""
        self._interest.refresh()
        if self._state is MemberState.LEFT:
            self._move(MemberState.UNJOINED)
        self._rejoin_if_outdated()

    def on_metadata(self, snapshot: ClusterMetadata) -> None:  # noqa: ARG002  the cluster has it
        """Topics or partitions may have been created or deleted."""
        self._rejoin_if_outdated()

    def on_step_done(self, step: RebalanceStep) -> None:
        """The caller's thread has completed a step."""
        if step is not self._step:
            return
        self._step = None
        if step.error is not None:
            self._next_join.block(assignor_failed(step.error))
        if self._state is MemberState.ASSIGNING:
            self._move(MemberState.STABLE)
            if step.has_revoked:
                self._rejoin("partitions were revoked, and can be assigned now")
            self._rejoin_if_outdated()
        elif self._state is MemberState.LEADING:
            self._on_led(step)
        else:
            if self._state is MemberState.PREPARING and step.error is None:
                self._next_join.prepared = step.result
            self._move(MemberState.UNJOINED)

    def enforce_rebalance(self, reason: str) -> None:
        """Rejoin, though nothing has changed; a rebalance that is under way will do."""
        self._rejoin(reason)

    def leave(self, reason: str) -> None:
        """Leave the group, and tell the coordinator.

        A static member says nothing: it may come back within its session without a
        rebalance.
        """
        connection = self._coordinator.free_connection
        if self._member.member_id and not self._member.is_static and connection is not None:
            log.info("group %s: leaving: %s", self._options.group_id, reason)
            self._is_leaving = True
            request = self._member.leave_request(reason)
            self._outbox.append(UnsentRequest(request, connection, self._on_left))
        self._abandon(keep_member_id=False)
        self._enter(MemberState.LEFT)

    def has_left(self) -> bool:
        """Whether leaving is done: the coordinator knows, or cannot be reached."""
        return not self._is_leaving

    def close(self, error: KafkaError) -> None:
        """The loop has ended; there are no waiters here."""

    # --- the turn of the loop ----------------------------------------------------------------

    def poll(self, now_ms: float) -> PollResult:
        """The requests to send now."""
        self._now_ms = now_ms
        if self._state is MemberState.UNJOINED:
            self._join_if_possible(now_ms)
        elif self._state is MemberState.JOINING:
            self._join_again_if_lost(now_ms)
        elif self._leader_waits_for is not None:
            self._lead_if_possible()
        if self._is_in_session():
            self._keep_alive(now_ms)
        requests, self._outbox = self._outbox, []
        return PollResult(requests, self._next_ms(now_ms))

    def _is_in_session(self) -> bool:
        return self._state in IN_SESSION and self._member.generation is not None

    def _next_ms(self, now_ms: float) -> float:
        if self._is_in_session():
            heartbeat_ms = self._heartbeat.next_ms(self._coordinator.connection is not None)
            return min(heartbeat_ms, self._poll_timer.deadline_ms())
        if self._state is MemberState.UNJOINED and self._next_join.at_ms > now_ms:
            return self._next_join.at_ms
        if self._state is MemberState.JOINING:
            return self._since_ms + self._options.join_patience_ms
        return math.inf

    def _keep_alive(self, now_ms: float) -> None:
        if self._poll_timer.is_late(now_ms):
            log.warning(
                "group %s: no poll for more than max.poll.interval.ms (%d ms), so this consumer "
                "leaves its group: poll more often, or return fewer records by max.poll.records",
                self._options.group_id,
                self._poll_timer.interval_ms,
            )
            self.leave("no poll within max.poll.interval.ms")
            self._next_join.reason = "the program polls again"
            self._move(MemberState.UNJOINED)
            self._ask(MemberState.FENCED, StepKind.LOSE)  # done by the next poll: back in then
            return
        connection = self._coordinator.want()
        if self._heartbeat.session_is_over(now_ms):
            self._heartbeat.start(now_ms)
            # Its connection may be dead without a sign: the next heartbeat needs another.
            self._coordinator.reconnect("no heartbeat was answered", now_ms)
            self._coordinator.forget("it answered no heartbeat for session.timeout.ms", now_ms)
        elif connection is not None and self._heartbeat.is_due(now_ms):
            self._heartbeat.sent(now_ms)
            request = self._member.heartbeat_request()
            on_done = partial(self._on_heartbeat, self._attempt)
            self._outbox.append(UnsentRequest(request, connection, on_done))

    def _join_if_possible(self, now_ms: float) -> None:
        can_join = self._poll_timer.is_running and self._interest.is_resolved()
        if not can_join or not self._next_join.is_due(now_ms):
            return
        owned = self._subscription.assigned()
        if owned and self._member.generation is None:
            self._ask(MemberState.FENCED, StepKind.LOSE)
            return
        topics = self._subscription.topics
        to_revoke = self._to_revoke(owned)
        prepared = self._next_join.prepared_for(topics)
        if to_revoke or prepared is None:
            work = partial(prepare_join, self._assignors, topics)
            self._ask(MemberState.PREPARING, StepKind.REVOKE, to_revoke, work)
            return
        connection = self._coordinator.want()
        if connection is None:
            return
        reason = self._next_join.reason
        log.info("group %s: joining: %s", self._options.group_id, reason)
        self._attempt += 1
        self._next_join.topics = topics
        request = self._member.join_request(topics, prepared.user_data, sorted(owned), reason)
        on_done = partial(self._on_join, self._attempt)
        timeout_ms = self._options.join_timeout_ms
        self._outbox.append(UnsentRequest(request, connection, on_done, timeout_ms))
        self._move(MemberState.JOINING)

    def _to_revoke(self, owned: set[TopicPartition]) -> tuple[TopicPartition, ...]:
        """What to give up before joining: everything, or what is not subscribed to any more."""
        if self._protocol is RebalanceProtocol.EAGER:
            return tuple(sorted(owned))
        topics = self._subscription.topics  # of a pattern, those that exist
        return tuple(sorted(one for one in owned if one.topic not in topics))

    def _join_again_if_lost(self, now_ms: float) -> None:
        """Join once more, on a new connection, if no answer came for long.

        The coordinator may hold a join back for as long as a rebalance takes. A connection that
        broke without a word looks the same. A second join of a member replaces the first.
        """
        if now_ms >= self._since_ms + self._options.join_patience_ms:
            self._attempt += 1
            self._next_join.at_once("no answer came to the last attempt")
            self._coordinator.reconnect("a join was not answered", now_ms)
            self._move(MemberState.UNJOINED)
            self._join_if_possible(now_ms)

    # --- answers -----------------------------------------------------------------------------

    def _on_join(self, attempt: int, outcome: Outcome, now_ms: float) -> None:
        if attempt != self._attempt:
            return
        self._now_ms = now_ms
        failure = failure_of(outcome, "joining the group") or self._member.mismatch_of(outcome)
        if failure is not None and not isinstance(failure, MemberIdRequiredError):
            self._on_rebalance_error(failure, now_ms)
            return
        assert isinstance(outcome, JoinGroupResponse)
        self._member.member_id = outcome.member_id
        if failure is not None:
            self._move(MemberState.UNJOINED)  # and join again, by the name it was given
            return
        self._member.generation = Generation(
            outcome.generation_id, outcome.member_id, outcome.protocol_name or ""
        )
        self._heartbeat.start(now_ms)
        if outcome.leader != outcome.member_id:
            self._leader = None
            self._interest.add_others(())
            self._move(MemberState.SYNCING)
            self._sync([])
            return
        assignor = self._assignors[outcome.protocol_name or ""]
        work = partial(lead, assignor, outcome, self._protocol, self._cluster.snapshot)
        self._leader = None
        self._ask(MemberState.LEADING, StepKind.WORK, work=work)

    def _on_led(self, step: RebalanceStep) -> None:
        """The caller's thread has read the subscriptions, and assigned if it could."""
        if step.error is not None:
            self._failed_total += 1
            self._move(MemberState.UNJOINED)
            return
        assert isinstance(step.result, LedRebalance)
        leader, version, assignments = step.result
        self._leader = leader
        self._interest.add_others(leader.topics)
        if assignments is not None:
            self._move(MemberState.SYNCING)
            self._sync(assignments)
            return
        self._leader_waits_for = version
        self._lead_if_possible()

    def _lead_if_possible(self) -> None:
        """Assign, once there is metadata about all topics; a list of all lacks what is not."""
        snapshot, leader = self._cluster.snapshot, self._leader
        assert leader is not None
        is_newer = snapshot.version != self._leader_waits_for
        if leader.knows_all(snapshot) or (is_newer and self._interest.asks_for_all):
            self._leader_waits_for = None
            work = partial(assign, leader, snapshot)
            self._step = RebalanceStep(StepKind.WORK, work=work)
            self._inbox.post_step(partial(self._run_step, self._step))

    def _sync(self, assignments: list[SyncGroupRequestAssignment]) -> None:
        connection = self._coordinator.want()
        if connection is None:  # lost while the leader assigned
            self._move(MemberState.UNJOINED)
            return
        request = self._member.sync_request(assignments)
        on_done = partial(self._on_sync, self._attempt)
        self._outbox.append(UnsentRequest(request, connection, on_done))

    def _on_sync(self, attempt: int, outcome: Outcome, now_ms: float) -> None:
        if attempt != self._attempt or self._state is not MemberState.SYNCING:
            return
        self._now_ms = now_ms
        failure = failure_of(outcome, "syncing with the group") or self._member.mismatch_of(outcome)
        if failure is not None:
            self._on_rebalance_error(failure, now_ms)
            return
        assert isinstance(outcome, SyncGroupResponse)
        try:
            assignment = decode_assignment(outcome.assignment)
        except ProtocolError as error:
            self._on_rebalance_error(error, now_ms)
            return
        partitions = tuple(assignment.topic_partitions())
        if not all(self._subscription.is_subscribed(topic) for topic in assignment.partitions):
            self._on_other_topics(sorted(assignment.partitions), now_ms)
            return
        generation = self._member.generation
        assert generation is not None
        if self._leader is not None:
            self._leader.on_assignment(generation.member_id, assignment)
        assignor = self._assignors[generation.protocol_name]
        work = partial(assignor.on_assignment, assignment, generation.generation_id)
        self._next_join.succeeded()
        self._rebalance_total += 1
        names = ", ".join(f"{topic}-{number}" for topic, number in partitions) or "none"
        log.info("group %s: assigned partitions: %s", self._options.group_id, names)
        self._ask(MemberState.ASSIGNING, StepKind.ASSIGN, partitions, work)

    def _on_other_topics(self, topics: list[str], now_ms: float) -> None:
        """The leader assigned topics that are not subscribed to: join again."""
        self._next_join.prepared = None
        if self._subscription.topics != self._next_join.topics:
            self._next_join.reason = "the subscribed topics have changed"
        else:  # so they were not, ever
            log.warning(
                "group %s: the leader assigned topics %s, which are not all subscribed to",
                self._options.group_id,
                topics,
            )
            reason = "the assignment has topics that are not subscribed to"
            self._next_join.back_off(reason, now_ms)
        self._move(MemberState.UNJOINED)

    def _on_heartbeat(self, attempt: int, outcome: Outcome, now_ms: float) -> None:
        if isinstance(outcome, KafkaError):
            self._heartbeat.failed(now_ms, self._backoff.backoff_ms(0))
            self._coordinator.on_error(outcome, now_ms)
            return
        self._heartbeat.received(now_ms)
        error = failure_of(outcome, "sending a heartbeat")
        if error is not None:
            self._coordinator.on_error(error, now_ms)
            if attempt == self._attempt and self._is_in_session():
                self._on_member_error(error)

    def _on_left(self, outcome: Outcome, now_ms: float) -> None:  # noqa: ARG002
        self._is_leaving = False
        self._inbox.ring()
        failure = failure_of(outcome, "leaving the group")
        if failure is not None:  # then the session times out by itself
            log.info("group %s: could not leave: %s", self._options.group_id, failure)

    # --- errors ------------------------------------------------------------------------------

    def _on_rebalance_error(self, error: KafkaError, now_ms: float) -> None:
        """Joining or syncing failed: join again, at once if the group itself asks for it."""
        self._coordinator.on_error(error, now_ms)
        self._failed_total += 1
        self._leader_waits_for = None
        reason = f"the last attempt failed: {error}"
        if isinstance(error, RebalanceInProgressError):
            self._next_join.at_once(reason)
        else:
            self._next_join.back_off(reason, now_ms)
            self._believe(error)
        self._move(MemberState.UNJOINED)

    def _on_member_error(self, error: KafkaError) -> None:
        """The coordinator rejects this member's generation."""
        if isinstance(error, RebalanceInProgressError):
            self._rejoin("the group is rebalancing")
            return
        had_partitions = self._step is not None or bool(self._subscription.assigned())
        self._believe(error)
        if self._member.generation is None:
            log.warning("group %s: lost the membership: %s", self._options.group_id, error)
            self._next_join.reason = "the membership was lost"
            self._move(MemberState.UNJOINED)
            if had_partitions:  # which others may read already
                self._ask(MemberState.FENCED, StepKind.LOSE)

    def _believe(self, error: KafkaError) -> None:
        """Apply an error of the coordinator about this member."""
        if isinstance(error, UnknownMemberIdError | FencedInstanceIdError):
            self._abandon(keep_member_id=False)
        elif isinstance(error, IllegalGenerationError):
            self._abandon(keep_member_id=True)
        if not (
            error.retriable or isinstance(error, UnknownMemberIdError | IllegalGenerationError)
        ):
            self._next_join.block(error)

    # --- changes of state --------------------------------------------------------------------

    def _rejoin_if_outdated(self) -> None:
        if self._subscription.topics != self._next_join.topics:
            self._rejoin("the subscribed topics have changed")
        elif self._leader is not None and self._leader.is_outdated(self._cluster.snapshot):
            self._rejoin("partitions of the topics have changed")

    def _rejoin(self, reason: str) -> None:
        """Rejoin from a stable generation; in other states a rebalance is under way already."""
        if self._state is MemberState.STABLE:
            self._next_join.at_once(reason)
            self._move(MemberState.UNJOINED)

    def _abandon(self, keep_member_id: bool) -> None:
        """Drop the generation and its pending requests and steps."""
        if self._step is not None:
            self._step.cancel()
            self._step = None
        self._attempt += 1
        self._leader = None
        self._leader_waits_for = None
        self._member.forget(keep_member_id)

    def _ask(
        self,
        state: MemberState,
        kind: StepKind,
        partitions: tuple[TopicPartition, ...] = (),
        work: Callable[[], object] | None = None,
    ) -> None:
        """Post a step to the caller's thread; `on_step_done` continues."""
        self._move(state)
        self._step = RebalanceStep(kind, partitions, work)
        self._inbox.post_step(partial(self._run_step, self._step))

    def _move(self, state: MemberState) -> None:
        assert state in TRANSITIONS[self._state], f"{self._state} to {state}"
        self._enter(state)

    def _enter(self, state: MemberState) -> None:
        self._state = state
        self._since_ms = self._now_ms
        self._coordinator.is_held_up = state in BETWEEN_GENERATIONS
        if state in BETWEEN_GENERATIONS:
            self._standing = in_rebalance
        else:
            self._standing = self._member.committer() or not_a_member
