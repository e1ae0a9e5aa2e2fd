"""A classic consumer group: members join, a leader assigns, heartbeats keep them in.

The state machine is `TRANSITIONS`; who may do what in which state follows Kafka's coordinator,
and who may join is in `admission`. Requests that have to wait are parked in their member.
Serving thread only; time comes from the node's timers, ids from its entropy, and every lasting
change goes through `on_change` to the log before anybody is told of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import ClassVar

from broker_stub.coordinator.admission import Admission
from broker_stub.coordinator.group_state import GroupState, JoinTerms
from broker_stub.coordinator.member import Member
from broker_stub.coordinator.roster import Roster
from broker_stub.purgatory import Timer, Timers
from broker_stub.request import Parked
from pyclient.entropy import Entropy
from pyclient.error_codes import code_of
from pyclient.errors import (
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class ClassicGroup:
    """One group. `generation_id` counts its rebalances."""

    TRANSITIONS: ClassVar = {
        GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
        GroupState.PREPARING_REBALANCE: {GroupState.COMPLETING_REBALANCE, GroupState.EMPTY},
        GroupState.COMPLETING_REBALANCE: {GroupState.STABLE, GroupState.PREPARING_REBALANCE},
        GroupState.STABLE: {GroupState.PREPARING_REBALANCE},
    }

    def __init__(
        self,
        group_id: str,
        timers: Timers,
        entropy: Entropy,
        initial_rebalance_delay_ms: int,
        on_change: Callable[[ClassicGroup], None],
    ) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.roster = Roster()
        self._admission = Admission(self, timers, entropy)
        self._timers = timers
        self._initial_delay_ms = initial_rebalance_delay_ms
        self._on_change = on_change
        self._rebalance_timer: Timer | None = None
        self._gathering = False  # the first members of a new group get a moment to arrive
        self._gathering_left_ms = 0
        self._arrived_lately = False

    # -- JoinGroup ---------------------------------------------------------------------------

    def join(
        self, request: JoinGroupRequest, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        """Take a member in, or back in.

        Raises:
            KafkaError: it may not join so.
        """
        return self._admission.join(request, terms)

    def add(self, member: Member, protocol_type: str) -> None:
        """Take a new member in; the first one says what kind of group this is."""
        if not len(self.roster):
            self.protocol_type = protocol_type
        self.roster.add(member)
        self._arrived_lately = True

    def park_join(self, member: Member, *, rebalance: bool) -> Parked[JoinGroupResponse]:
        """Let a member wait for the next generation, and start the way there if need be."""
        parked: Parked[JoinGroupResponse] = Parked()
        member.join = parked
        self.renew(member)
        if rebalance:
            self._prepare_rebalance()
        self.complete_join_if_all_are_here()
        return parked

    def joined(self, member: Member) -> JoinGroupResponse:
        """What a member is told of the generation; the leader also who is in it."""
        leads = member.member_id == self.roster.leader_id
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.roster.leader_id or "",
            member_id=member.member_id,
            members=self.roster.described(self.protocol_name) if leads else [],
        )

    # -- the rebalance -----------------------------------------------------------------------

    def _prepare_rebalance(self) -> None:
        if self.state is GroupState.COMPLETING_REBALANCE:
            self._refuse_syncs(RebalanceInProgressError.code)
        self._gathering = self.state is GroupState.EMPTY and self._initial_delay_ms > 0
        self._move_to(GroupState.PREPARING_REBALANCE)
        if self._gathering:
            self._gathering_left_ms = self.roster.longest_rebalance_ms()
            self._gather()
        else:
            self._schedule(self.roster.longest_rebalance_ms(), self._complete_join)

    def _gather(self) -> None:
        """Wait for one delay, and for another as long as members come, in all for a rebalance."""
        delay_ms = min(self._initial_delay_ms, self._gathering_left_ms)
        self._gathering_left_ms -= delay_ms
        self._arrived_lately = False
        self._schedule(delay_ms, self._end_of_delay)

    def _end_of_delay(self) -> None:
        if self._arrived_lately and self._gathering_left_ms > 0:
            self._gather()
        else:
            self._complete_join()

    def complete_join_if_all_are_here(self) -> None:
        """Start the next generation, if it waits for nobody any more."""
        if (
            self.state is GroupState.PREPARING_REBALANCE
            and not self._gathering
            and not self._admission.awaits_promised
            and all(member.awaits_join for member in self.roster)
        ):
            self._complete_join()

    def _complete_join(self) -> None:
        self._gathering = False
        for member in list(self.roster):
            if not member.awaits_join and not member.is_static:
                self._drop(member)  # a static one keeps its place until its session ends
        if not len(self.roster):
            self._become_empty()
            return
        joined = self.roster.joined()
        if not joined:
            self._schedule(self.roster.longest_rebalance_ms(), self._complete_join)
            return
        if self.roster.leader_id not in {one.member_id for one in joined}:
            self.roster.leader_id = joined[0].member_id
        self.generation_id += 1
        self.protocol_name = self.roster.elect_protocol()
        self._move_to(GroupState.COMPLETING_REBALANCE)
        self._schedule(self.roster.longest_rebalance_ms(), self._expel_those_without_sync)
        for member in joined:
            self.renew(member)
            member.answer_join(self.joined(member))

    def _become_empty(self) -> None:
        self.generation_id += 1
        self.protocol_name = self.roster.leader_id = None
        self._move_to(GroupState.EMPTY)
        self._schedule(None, None)
        # If the log refuses (which was logged), a restart brings the last generation back, and
        # its members, who are gone, time out: no harm, so nobody is told.
        with suppress(KafkaError):
            self.keep()

    def _expel_those_without_sync(self) -> None:
        for member in [one for one in self.roster if one.sync is None]:
            self._drop(member)
        self._rebalance_without_the_gone()

    # -- SyncGroup ---------------------------------------------------------------------------

    def sync(self, request: SyncGroupRequest) -> SyncGroupResponse | Parked[SyncGroupResponse]:
        """Hand out the assignment, now or once the leader has handed it in.

        Raises:
            KafkaError: the member is not of this generation.
        """
        member = self.validate(request.member_id, request.group_instance_id, request.generation_id)
        self._check_sync_protocol(request)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgressError(f"group {self.group_id} rebalances")
        self.renew(member)
        if self.state is GroupState.STABLE:
            return self._assigned(member)
        parked: Parked[SyncGroupResponse] = Parked()
        member.sync = parked
        if member.member_id == self.roster.leader_id:
            self._assign({one.member_id: one.assignment for one in request.assignments})
        return parked

    def _check_sync_protocol(self, request: SyncGroupRequest) -> None:
        told = ((request.protocol_type, self.protocol_type),
                (request.protocol_name, self.protocol_name))  # fmt: skip
        if any(theirs is not None and theirs != ours for theirs, ours in told):
            raise InconsistentGroupProtocolError(
                f"group {self.group_id} uses {self.protocol_type}/{self.protocol_name}"
            )

    def _assign(self, assignments: dict[str, bytes]) -> None:
        for member in self.roster:
            member.assignment = assignments.get(member.member_id, b"")
        try:
            self.keep()
        except KafkaError as error:
            # Not on disk, so it must not be: nobody gets it, and the group tries again.
            for member in self.roster:
                member.assignment = b""
            self._refuse_syncs(code_of(error))
            self._prepare_rebalance()
            raise
        self._move_to(GroupState.STABLE)
        self._schedule(None, None)
        for member in self.roster:
            if member.sync is not None:
                member.answer_sync(self._assigned(member))
                self.renew(member)

    def _assigned(self, member: Member) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def _refuse_syncs(self, error_code: int) -> None:
        for member in self.roster:
            if member.sync is not None:
                member.answer_sync(SyncGroupResponse(error_code=error_code))
                self.renew(member)  # it could not send heartbeats while it waited

    # -- staying and leaving -----------------------------------------------------------------

    def heartbeat(self, member_id: str, group_instance_id: str | None, generation_id: int) -> None:
        """Keep a member in.

        Raises:
            KafkaError: it is not of this generation, or has to join again.
        """
        self.renew(self.validate(member_id, group_instance_id, generation_id))
        if self.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgressError(f"group {self.group_id} rebalances")

    def validate_commit(
        self, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> None:
        """Check that offsets may be committed.

        Raises:
            KafkaError: not by this member, or not now.
        """
        if generation_id < 0 and self.state is GroupState.EMPTY:
            return  # partitions assigned by hand, offsets kept here
        member = self.validate(member_id, group_instance_id, generation_id)
        if self.state is GroupState.COMPLETING_REBALANCE:
            # The partitions may be somebody else's already: it must sync first.
            raise RebalanceInProgressError(f"group {self.group_id} rebalances")
        self.renew(member)

    def validate(self, member_id: str, group_instance_id: str | None, generation_id: int) -> Member:
        """The member, if it is one and of the present generation."""
        member = self.roster.find(member_id, group_instance_id)
        if generation_id != self.generation_id:
            raise IllegalGenerationError(
                f"generation {generation_id}; group {self.group_id} is at {self.generation_id}"
            )
        return member

    def leave(self, member_id: str, group_instance_id: str | None) -> str:
        """Remove a member at once; its id comes back.

        Raises:
            KafkaError: there is no such member.
        """
        if group_instance_id is not None and not member_id:
            static = self.roster.find_static(group_instance_id)
            if static is None:
                raise UnknownMemberIdError(f"no member with instance id {group_instance_id}")
            member_id = static.member_id
        if not self._admission.break_promise(member_id):
            self._remove(self.roster.find(member_id, group_instance_id))
        return member_id

    def renew(self, member: Member) -> None:
        """A member was heard of: its session starts anew."""
        member.stop_timer()
        member.session_timer = self._timers.after(
            member.session_timeout_ms, partial(self._expire, member)
        )

    def _expire(self, member: Member) -> None:
        if member not in self.roster:
            return
        if member.awaits_answer:
            self.renew(member)
        else:
            self._remove(member)

    def _remove(self, member: Member) -> None:
        self._drop(member)
        self._rebalance_without_the_gone()

    def _rebalance_without_the_gone(self) -> None:
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._prepare_rebalance()
        self.complete_join_if_all_are_here()

    def _drop(self, member: Member) -> None:
        member.stop_timer()
        unknown = UnknownMemberIdError.code
        member.answer_join(JoinGroupResponse(error_code=unknown, member_id=member.member_id))
        member.answer_sync(SyncGroupResponse(error_code=unknown))
        self.roster.remove(member)

    # -- the log, the timer, the state -------------------------------------------------------

    def keep(self) -> None:
        """Write the group as it is to the log."""
        self._on_change(self)

    def restore(self, members: Iterable[Member], state: GroupState) -> None:
        """Take over what the log says after a restart, and expect heartbeats from now on."""
        for member in members:
            self.roster.add(member)
            self.renew(member)
        self.state = state

    def _schedule(self, delay_ms: int | None, callback: Callable[[], None] | None) -> None:
        if self._rebalance_timer is not None:
            self._rebalance_timer.cancel()
            self._rebalance_timer = None
        if delay_ms is not None and callback is not None:
            self._rebalance_timer = self._timers.after(delay_ms, callback)

    def _move_to(self, state: GroupState) -> None:
        if state not in self.TRANSITIONS[self.state]:
            raise AssertionError(f"group {self.group_id}: {self.state} to {state}")
        self.state = state
