"""A classic consumer group: members join, the leader assigns, heartbeats keep them in.

`TRANSITIONS` is the state machine; `admission` handles joins, `session_expiration` sessions.
Requests that have to wait are parked in their member. Serving thread only. A change that must
survive a restart goes through `on_change` to the log before any client is told about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import ClassVar, Final

from broker_stub.coordinator.groups.admission import Admission
from broker_stub.coordinator.groups.group_state import GroupSettings, GroupState, JoinTerms
from broker_stub.coordinator.groups.member import Member
from broker_stub.coordinator.groups.roster import Roster
from broker_stub.coordinator.groups.session_expiration import SessionExpiration
from broker_stub.coordinator.groups.subscriptions import CONSUMER, Subscriptions
from broker_stub.purgatory import Timer, Timers
from broker_stub.request import Parked
from pyclient.clock import Clock
from pyclient.entropy import Entropy
from pyclient.error_codes import code_of
from pyclient.errors import (
    CoordinatorNotAvailableError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_INT32_MAX: Final = (1 << 31) - 1


class ClassicGroup:
    """One group. Each rebalance that completes starts a generation.

    Attributes:
        state_since_ms: the wall-clock time of the last transition; None in old records.
        subscriptions: the topics of the last generation's members.
    """

    TRANSITIONS: ClassVar = {
        GroupState.EMPTY: {GroupState.PREPARING_REBALANCE, GroupState.DEAD},
        GroupState.PREPARING_REBALANCE: {
            GroupState.COMPLETING_REBALANCE,
            GroupState.EMPTY,
            GroupState.DEAD,
        },
        GroupState.COMPLETING_REBALANCE: {
            GroupState.STABLE,
            GroupState.PREPARING_REBALANCE,
            GroupState.DEAD,
        },
        GroupState.STABLE: {GroupState.PREPARING_REBALANCE, GroupState.DEAD},
        GroupState.DEAD: set(),
    }

    def __init__(
        self,
        group_id: str,
        *,
        timers: Timers,
        clock: Clock,
        entropy: Entropy,
        settings: GroupSettings,
        on_change: Callable[[ClassicGroup], None],
    ) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms: int | None = clock.now_ms()
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.roster = Roster()
        self.sessions = SessionExpiration(timers, self._expel)
        self.subscriptions = Subscriptions(None, None)
        self._admission = Admission(self, timers, entropy, settings.max_size)
        self._timers = timers
        self._clock = clock
        self._settings = settings
        self._on_change = on_change
        self._rebalance_timer: Timer | None = None
        self._unsynced: set[str] = set()  # members of this generation without a SyncGroup yet
        self._is_initial_rebalance = False  # the first members get some time to arrive
        self._initial_left_ms = 0
        self._member_added = False

    @property
    def has_pending_members(self) -> bool:
        """Whether a member id was handed out that nobody has joined with yet."""
        return self._admission.has_pending_members

    @property
    def rebalance_deadline_ms(self) -> float | None:
        """The monotonic time at which the group stops waiting for members."""
        timer = self._rebalance_timer
        return timer.deadline_ms if timer is not None and timer.pending else None

    def may_subscribe_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, or may do so: subscriptions can be unknown."""
        topics = self.subscriptions.topics
        return self.protocol_type == CONSUMER if topics is None else topic in topics

    # --- JoinGroup ---------------------------------------------------------------------------

    def join(
        self, request: JoinGroupRequest, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        """Add a member, or let one rejoin.

        Raises:
            KafkaError: the join is refused.
        """
        return self._admission.join(request, terms)

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a new member. The first one sets the group's protocol type."""
        if not len(self.roster):
            self.protocol_type = protocol_type
            if self.subscriptions.topics is None:
                self.subscriptions = Subscriptions(protocol_type, None)
        self.roster.add(member)
        self._member_added = True

    def replace(self, old: Member, member: Member) -> None:
        """Put a static member in its predecessor's place."""
        self.roster.replace(old, member)
        if old.member_id in self._unsynced:
            self._unsynced.remove(old.member_id)
            self._unsynced.add(member.member_id)

    def park_join(self, member: Member) -> Parked[JoinGroupResponse]:
        """Park a member's join until the next generation, and start a rebalance if none runs."""
        parked = member.park_join()
        self.sessions.renew(member)
        if self.state is not GroupState.PREPARING_REBALANCE:
            self._prepare_rebalance()
        self.complete_join_if_all_joined()
        return parked

    def join_response(self, member: Member) -> JoinGroupResponse:
        """The answer to a member's join. Only the leader's lists the members."""
        leads = member.member_id == self.roster.leader_id
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.roster.leader_id or "",
            member_id=member.member_id,
            members=self.roster.describe(self.protocol_name) if leads else [],
        )

    # --- the rebalance -----------------------------------------------------------------------

    def _prepare_rebalance(self) -> None:
        if self.state is GroupState.COMPLETING_REBALANCE:
            for member in self.roster:
                member.assignment = b""
            self._refuse_syncs(RebalanceInProgressError.code)
        self._unsynced.clear()
        is_initial = self.state is GroupState.EMPTY
        self._move_to(GroupState.PREPARING_REBALANCE)
        if not is_initial:
            self._schedule(self.roster.longest_rebalance_ms(), self._complete_join)
        elif self._settings.initial_rebalance_delay_ms == 0:
            self._complete_join()
        else:
            delay_ms = self._settings.initial_rebalance_delay_ms
            self._is_initial_rebalance = True
            self._initial_left_ms = max(self.roster.longest_rebalance_ms() - delay_ms, 0)
            self._wait_for_more_members(delay_ms)

    def _wait_for_more_members(self, delay_ms: int) -> None:
        self._member_added = False
        self._schedule(delay_ms, self._end_initial_delay)

    def _end_initial_delay(self) -> None:
        """Wait once more if members came meanwhile, in all for the rebalance timeout."""
        if self._member_added and self._initial_left_ms > 0:
            delay_ms = min(self._settings.initial_rebalance_delay_ms, self._initial_left_ms)
            self._initial_left_ms -= delay_ms
            self._wait_for_more_members(delay_ms)
        else:
            self._complete_join()

    def complete_join_if_all_joined(self) -> None:
        """Start the next generation, unless a member still has to join."""
        if (
            self.state is GroupState.PREPARING_REBALANCE
            and not self._is_initial_rebalance
            and not self._admission.has_pending_members
            and all(member.awaits_join for member in self.roster)
        ):
            self._complete_join()

    def _complete_join(self) -> None:
        self._is_initial_rebalance = False
        for member in list(self.roster):
            if not member.awaits_join and not member.is_static:
                self._drop(member)  # a static member stays until its session expires
        if not len(self.roster):
            self._become_empty()
            return
        joined = self.roster.awaiting_join()
        if not joined:
            self._schedule(self.roster.longest_rebalance_ms(), self._complete_join)
            return
        if all(one.member_id != self.roster.leader_id for one in joined):
            self.roster.leader_id = joined[0].member_id
        self._start_generation(self.roster.elect_protocol())
        self._move_to(GroupState.COMPLETING_REBALANCE)
        self._unsynced = {member.member_id for member in self.roster}
        self._schedule(self.roster.longest_rebalance_ms(), self._expel_unsynced)
        for member in self.roster:
            member.is_new = False
            self.sessions.renew(member)
        for member in joined:
            member.answer_join(self.join_response(member))

    def _start_generation(self, protocol_name: str | None) -> None:
        is_last = self.generation_id == _INT32_MAX
        self.generation_id = -_INT32_MAX - 1 if is_last else self.generation_id + 1  # as in Java
        self.protocol_name = protocol_name
        self._note_subscriptions()

    def _note_subscriptions(self) -> None:
        metadata = [member.metadata(self.protocol_name) for member in self.roster]
        self.subscriptions = Subscriptions(self.protocol_type, metadata)

    def _become_empty(self) -> None:
        self.roster.leader_id = None
        self._start_generation(None)
        self._move_to(GroupState.EMPTY)
        self._cancel_timer()
        # If the log refuses (which it logs), a restart restores the last generation, whose members
        # are gone and expire. No client has to know.
        with suppress(KafkaError):
            self.persist()

    def _expel_unsynced(self) -> None:
        """The rebalance timeout passed: remove the members that did not send SyncGroup."""
        for member in [one for one in self.roster if one.member_id in self._unsynced]:
            self._drop(member)
        self._prepare_rebalance()
        self.complete_join_if_all_joined()

    # --- SyncGroup ---------------------------------------------------------------------------

    def sync(self, request: SyncGroupRequest) -> SyncGroupResponse | Parked[SyncGroupResponse]:
        """Give a member its assignment, or park it until the leader has sent it.

        Raises:
            KafkaError: the member is not in this generation.
        """
        member = self.validate(request.member_id, request.group_instance_id, request.generation_id)
        self._check_sync_protocol(request)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise self._rebalancing()
        self.sessions.renew(member)
        self._unsynced.discard(member.member_id)
        if self.state is GroupState.STABLE:
            self._cancel_timer_if_all_synced()
            return self._sync_response(member)
        parked = member.park_sync()
        if member.member_id == self.roster.leader_id:
            self._assign({one.member_id: one.assignment for one in request.assignments})
        return parked

    def _check_sync_protocol(self, request: SyncGroupRequest) -> None:
        pairs = ((request.protocol_type, self.protocol_type),
                 (request.protocol_name, self.protocol_name))  # fmt: skip
        if any(None not in (theirs, ours) and theirs != ours for theirs, ours in pairs):
            raise InconsistentGroupProtocolError(
                f"group {self.group_id} uses {self.protocol_type}/{self.protocol_name}"
            )

    def _assign(self, assignments: dict[str, bytes]) -> None:
        for member in self.roster:
            member.assignment = assignments.get(member.member_id, b"")
        try:
            self.persist()
        except KafkaError as error:
            # A restart would not know the assignment, so no member may get it.
            self._refuse_syncs(code_of(error))
            self._prepare_rebalance()
            raise
        self._move_to(GroupState.STABLE)
        self._cancel_timer_if_all_synced()
        for member in self.roster:
            if member.sync is not None:
                member.answer_sync(self._sync_response(member))
                self.sessions.renew(member)

    def _sync_response(self, member: Member) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def _refuse_syncs(self, error_code: int) -> None:
        for member in self.roster:
            if member.sync is not None:
                member.answer_sync(SyncGroupResponse(error_code=error_code))
                self.sessions.renew(member)  # it could not send heartbeats while it waited

    def _cancel_timer_if_all_synced(self) -> None:
        if not self._unsynced:
            self._cancel_timer()

    # --- staying and leaving -----------------------------------------------------------------

    def heartbeat(self, member_id: str, group_instance_id: str | None, generation_id: int) -> None:
        """Renew a member's session.

        Raises:
            KafkaError: it is not in this generation, or has to rejoin.
        """
        self.sessions.renew(self.validate(member_id, group_instance_id, generation_id))
        if self.state is GroupState.PREPARING_REBALANCE:
            raise self._rebalancing()

    def validate_commit(
        self, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> None:
        """Check that a member may commit offsets, and renew its session.

        Raises:
            KafkaError: it may not, or not now.
        """
        if generation_id < 0 and self.state is GroupState.EMPTY:
            return  # an admin client, or a consumer without group management
        member = self.validate(member_id, group_instance_id, generation_id)
        if self.state is GroupState.COMPLETING_REBALANCE:
            # Its partitions may be assigned to another member: it has to sync first.
            raise self._rebalancing()
        self.sessions.renew(member)

    def validate_transactional_commit(
        self, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> None:
        """Check that a member may commit offsets in a transaction, also during a rebalance.

        Clients before KIP-447 name no member: their transactions are checked by nothing else.

        Raises:
            KafkaError: it may not.
        """
        if generation_id >= 0 or member_id or group_instance_id is not None:
            if generation_id < 0 and self.state is GroupState.EMPTY:
                return
            self.validate(member_id, group_instance_id, generation_id)
        elif self.state is GroupState.DEAD:
            raise CoordinatorNotAvailableError(f"group {self.group_id} was deleted; join again")

    def validate(self, member_id: str, group_instance_id: str | None, generation_id: int) -> Member:
        """The member, if it is in the current generation.

        Raises:
            KafkaError: it is not.
        """
        if self.state is GroupState.DEAD:
            raise CoordinatorNotAvailableError(f"group {self.group_id} was deleted; join again")
        member = self.roster.find(member_id, group_instance_id)
        if generation_id != self.generation_id:
            raise IllegalGenerationError(
                f"generation {generation_id}: group {self.group_id} is in {self.generation_id}"
            )
        return member

    def leave(self, identities: Sequence[tuple[str, str | None]]) -> list[KafkaError | None]:
        """Remove members, named by member id and instance id; either may be missing.

        The others rebalance once. Gives each member's error, None where it left.
        """
        results: list[KafkaError | None] = []
        has_left = False
        for member_id, instance_id in identities:
            error: KafkaError | None = None
            try:
                if not self._admission.drop_pending(member_id):
                    self._drop(self._find_leaving(member_id, instance_id))
                    has_left = True  # a pending member's leaving is no reason to rebalance
            except KafkaError as refused:
                error = refused
            results.append(error)
        if has_left:
            self._rebalance_without_removed()
        self.complete_join_if_all_joined()
        return results

    def _find_leaving(self, member_id: str, instance_id: str | None) -> Member:
        if instance_id is not None and not member_id:
            # How an admin client removes static members.
            static = self.roster.find_static(instance_id)
            if static is None:
                raise UnknownMemberIdError(f"no member has the instance id {instance_id}")
            return static
        return self.roster.find(member_id, instance_id)

    def remove(self, member: Member) -> None:
        """Remove a member; the others rebalance."""
        self._drop(member)
        self._rebalance_without_removed()

    def _expel(self, member: Member) -> None:
        if member in self.roster:
            self.remove(member)

    def _rebalance_without_removed(self) -> None:
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._prepare_rebalance()
        self.complete_join_if_all_joined()

    def _drop(self, member: Member) -> None:
        self.sessions.end(member)
        member.refuse(UnknownMemberIdError.code)
        self.roster.remove(member)
        self._unsynced.discard(member.member_id)

    def _rebalancing(self) -> RebalanceInProgressError:
        return RebalanceInProgressError(f"group {self.group_id} is rebalancing")

    # --- the log, the timer, the state -------------------------------------------------------

    def persist(self) -> None:
        """Write the group to the log.

        Raises:
            KafkaError: the log refused it.
        """
        self._on_change(self)

    def restore(
        self, members: Iterable[Member], leader_id: str | None, state_since_ms: int | None
    ) -> None:
        """Take over what the log says after a restart, and expect heartbeats from now on."""
        for member in members:
            self.roster.add(member)
            self.sessions.renew(member)
        if leader_id is not None and self.roster.get(leader_id) is not None:
            self.roster.leader_id = leader_id
        self.state = GroupState.STABLE if len(self.roster) else GroupState.EMPTY
        self.state_since_ms = state_since_ms
        self._note_subscriptions()
        if len(self.roster) > self._settings.max_size:
            self._prepare_rebalance()  # the option was lowered: let members commit, then rejoin

    def die(self, error_code: int) -> None:
        """End the group: it was deleted, or its log is gone. What is parked gets the error."""
        self._cancel_timer()
        self._admission.close()
        for member in list(self.roster):
            self.sessions.end(member)
            member.refuse(error_code)
            self.roster.remove(member)
        self._unsynced.clear()
        self._move_to(GroupState.DEAD)

    def _schedule(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self._cancel_timer()
        self._rebalance_timer = self._timers.after(delay_ms, callback)

    def _cancel_timer(self) -> None:
        if self._rebalance_timer is not None:
            self._rebalance_timer.cancel()
            self._rebalance_timer = None

    def _move_to(self, state: GroupState) -> None:
        if state not in self.TRANSITIONS[self.state]:
            raise AssertionError(f"group {self.group_id}: {self.state} to {state}")
        self.state = state
        self.state_since_ms = self._clock.now_ms()
