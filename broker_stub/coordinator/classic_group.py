"""A classic consumer group: members join, a leader assigns, heartbeats keep them in.

The state machine is `TRANSITIONS`; who may do what in which state follows Kafka's coordinator.
Requests that have to wait are parked in their member. Serving thread only; time comes from the
node's timers, ids from its entropy, and every lasting change goes through `on_change` to the log
before anybody is told of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

from broker_stub.coordinator.group_state import GroupState, JoinTerms
from broker_stub.coordinator.member import NEW_MEMBER_JOIN_TIMEOUT_MS, Member
from broker_stub.coordinator.roster import Roster
from broker_stub.purgatory import Timer, Timers
from broker_stub.request import Parked
from pyclient.entropy import Entropy
from pyclient.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
)
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
        self._promised: dict[str, Timer] = {}  # member ids given out, whose join is awaited
        self._timers = timers
        self._entropy = entropy
        self._initial_delay_ms = initial_rebalance_delay_ms
        self._on_change = on_change
        self._rebalance_timer: Timer | None = None
        self._gathering = False  # the first members of a new group get a moment to arrive

    # -- JoinGroup ---------------------------------------------------------------------------

    def join(
        self, request: JoinGroupRequest, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        """Take a member in, or back in.

        Raises:
            KafkaError: it may not join so.
        """
        self._check_protocols(request)
        if request.group_instance_id is not None:
            return self._join_static(request, terms, request.group_instance_id)
        if not request.member_id:
            member_id = f"{terms.client_id}-{self._entropy.uuid().hex()}"
            if terms.member_id_required:
                return self._promise(member_id, request)
            return self._add_and_rebalance(member_id, request, terms)
        if request.member_id in self._promised:
            self._promised.pop(request.member_id).cancel()
            return self._add_and_rebalance(request.member_id, request, terms)
        return self._rejoin(self.roster.find(request.member_id), request)

    def _check_protocols(self, request: JoinGroupRequest) -> None:
        if not request.protocol_type or not request.protocols:
            raise InconsistentGroupProtocolError("no protocol type, or no protocols")
        if len(self.roster) and request.protocol_type != self.protocol_type:
            raise InconsistentGroupProtocolError(
                f"group {self.group_id} is of type {self.protocol_type}, "
                f"not {request.protocol_type}"
            )
        self.roster.check_common_protocol(request)

    def _promise(self, member_id: str, request: JoinGroupRequest) -> JoinGroupResponse:
        # A client whose first answer is lost would otherwise leave a ghost behind (KIP-394).
        timer = self._timers.after(
            request.session_timeout_ms, partial(self._forget_promise, member_id)
        )
        self._promised[member_id] = timer
        return JoinGroupResponse(error_code=MemberIdRequiredError.code, member_id=member_id)

    def _forget_promise(self, member_id: str) -> None:
        timer = self._promised.pop(member_id, None)
        if timer is not None:
            timer.cancel()
            self._complete_join_if_all_are_here()

    def _join_static(
        self, request: JoinGroupRequest, terms: JoinTerms, instance_id: str
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        if request.member_id:
            return self._rejoin(self.roster.find(request.member_id, instance_id), request)
        member_id = f"{instance_id}-{self._entropy.uuid().hex()}"
        known = self.roster.find_static(instance_id)
        if known is None:
            return self._add_and_rebalance(member_id, request, terms)
        return self._replace_static(known, member_id, request, terms)

    def _replace_static(
        self, old: Member, member_id: str, request: JoinGroupRequest, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        """A static member is back after a restart: it takes its predecessor's place."""
        fenced = FencedInstanceIdError.code
        old.answer_join(JoinGroupResponse(error_code=fenced, member_id=old.member_id))
        old.answer_sync(SyncGroupResponse(error_code=fenced))
        old_leader_id, unchanged = self.roster.leader_id, old.has_protocols(request.protocols)
        self._drop(old)
        member = self._add(member_id, request, terms)
        member.assignment = old.assignment
        if old_leader_id == old.member_id:
            self.roster.leader_id = member_id
        if self.state is GroupState.STABLE and unchanged:
            self._on_change(self)
            self._renew(member)
            return self._answer_returned(member, old_leader_id, terms)
        return self._park_join(member, rebalance=self.state is not GroupState.PREPARING_REBALANCE)

    def _answer_returned(
        self, member: Member, old_leader_id: str | None, terms: JoinTerms
    ) -> JoinGroupResponse:
        # Nothing changed, so nobody rebalances. A leader that can't be told to skip its
        # assignment is told of its own past id instead, so that it takes itself for a follower.
        response = self._joined(member)
        if terms.can_skip_assignment:
            response.skip_assignment = member.member_id == self.roster.leader_id
        else:
            response.leader = old_leader_id or ""
            response.members = []
        return response

    def _rejoin(
        self, member: Member, request: JoinGroupRequest
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        unchanged = member.has_protocols(request.protocols)
        settled = self.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        leads = member.member_id == self.roster.leader_id and self.state is GroupState.STABLE
        if settled and unchanged and not leads:
            # It missed our answer, or a leader's demand for a rebalance is none of its making.
            self._renew(member)
            return self._joined(member)
        member.protocols = request.protocols
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        return self._park_join(member, rebalance=settled)

    def _add_and_rebalance(
        self, member_id: str, request: JoinGroupRequest, terms: JoinTerms
    ) -> Parked[JoinGroupResponse]:
        member = self._add(member_id, request, terms)
        self._extend_gathering()
        return self._park_join(member, rebalance=self.state is not GroupState.PREPARING_REBALANCE)

    def _add(self, member_id: str, request: JoinGroupRequest, terms: JoinTerms) -> Member:
        member = Member(
            member_id,
            request.group_instance_id,
            terms.client_id,
            terms.client_host,
            request.session_timeout_ms,
            _rebalance_timeout_ms(request),
            request.protocols,
        )
        if not len(self.roster):
            self.protocol_type = request.protocol_type
        self.roster.add(member)
        return member

    def _park_join(self, member: Member, *, rebalance: bool) -> Parked[JoinGroupResponse]:
        parked: Parked[JoinGroupResponse] = Parked()
        member.join = parked
        self._renew(member)
        if rebalance:
            self._prepare_rebalance()
        self._complete_join_if_all_are_here()
        return parked

    # -- the rebalance -----------------------------------------------------------------------

    def _prepare_rebalance(self) -> None:
        if self.state is GroupState.COMPLETING_REBALANCE:
            self._refuse_syncs(RebalanceInProgressError.code)
        self._gathering = self.state is GroupState.EMPTY and self._initial_delay_ms > 0
        self._move_to(GroupState.PREPARING_REBALANCE)
        delay_ms = self._initial_delay_ms if self._gathering else self.roster.longest_rebalance_ms()
        self._schedule(delay_ms, self._complete_join)

    def _extend_gathering(self) -> None:
        if self._gathering:
            self._schedule(self._initial_delay_ms, self._complete_join)

    def _complete_join_if_all_are_here(self) -> None:
        if (
            self.state is GroupState.PREPARING_REBALANCE
            and not self._gathering
            and not self._promised
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
            self._renew(member)
            member.answer_join(self._joined(member))

    def _become_empty(self) -> None:
        self.generation_id += 1
        self.protocol_name = self.roster.leader_id = None
        self._move_to(GroupState.EMPTY)
        self._schedule(None, None)
        self._on_change(self)

    def _expel_those_without_sync(self) -> None:
        for member in [one for one in self.roster if one.sync is None]:
            self._drop(member)
        self._rebalance_without_the_gone()

    def _joined(self, member: Member) -> JoinGroupResponse:
        leads = member.member_id == self.roster.leader_id
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.roster.leader_id or "",
            member_id=member.member_id,
            members=self.roster.described(self.protocol_name) if leads else [],
        )

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
        self._renew(member)
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
            self._on_change(self)
        except KafkaError:
            # Not on disk, so it must not be: nobody gets it, and the group tries again.
            for member in self.roster:
                member.assignment = b""
            self._refuse_syncs(CoordinatorNotAvailableError.code)
            self._prepare_rebalance()
            raise
        self._move_to(GroupState.STABLE)
        self._schedule(None, None)
        for member in self.roster:
            if member.sync is not None:
                member.answer_sync(self._assigned(member))
                self._renew(member)

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
                self._renew(member)  # it could not send heartbeats while it waited

    # -- staying and leaving -----------------------------------------------------------------

    def heartbeat(self, member_id: str, group_instance_id: str | None, generation_id: int) -> None:
        """Keep a member in.

        Raises:
            KafkaError: it is not of this generation, or has to join again.
        """
        self._renew(self.validate(member_id, group_instance_id, generation_id))
        if self.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgressError(f"group {self.group_id} rebalances")

    def validate_commit(
        self, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> None:
        """Check that offsets may be committed.

        Raises:
            KafkaError: not by this member, or not now.
        """
        if generation_id < 0 and not member_id and not len(self.roster):
            return  # partitions assigned by hand, offsets kept here
        member = self.validate(member_id, group_instance_id, generation_id)
        if self.state is GroupState.COMPLETING_REBALANCE:
            # The partitions may be somebody else's already: it must sync first.
            raise RebalanceInProgressError(f"group {self.group_id} rebalances")
        self._renew(member)

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
        if member_id in self._promised:
            self._forget_promise(member_id)
        else:
            self._remove(self.roster.find(member_id, group_instance_id))
        return member_id

    def restore(self, members: Iterable[Member], state: GroupState) -> None:
        """Take over what the log says after a restart."""
        for member in members:
            self.roster.add(member)
        self.state = state

    def start_sessions(self) -> None:
        """Expect heartbeats of the restored members from now on."""
        for member in self.roster:
            self._renew(member)

    def close(self) -> None:
        """Stop all timers; parked requests end with their connections."""
        self._schedule(None, None)
        for member in self.roster:
            member.stop_timer()
        for timer in self._promised.values():
            timer.cancel()

    # -- the small print ---------------------------------------------------------------------

    def _renew(self, member: Member) -> None:
        member.stop_timer()
        timeout_ms = member.session_timeout_ms
        if member.awaits_join and self._gathering:
            timeout_ms = max(timeout_ms, NEW_MEMBER_JOIN_TIMEOUT_MS)
        member.session_timer = self._timers.after(timeout_ms, partial(self._expire, member))

    def _expire(self, member: Member) -> None:
        if member not in self.roster:
            return
        if member.awaits_answer:
            self._renew(member)
        else:
            self._remove(member)

    def _remove(self, member: Member) -> None:
        self._drop(member)
        self._rebalance_without_the_gone()

    def _rebalance_without_the_gone(self) -> None:
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._prepare_rebalance()
        self._complete_join_if_all_are_here()

    def _drop(self, member: Member) -> None:
        member.stop_timer()
        unknown = UnknownMemberIdError.code
        member.answer_join(JoinGroupResponse(error_code=unknown, member_id=member.member_id))
        member.answer_sync(SyncGroupResponse(error_code=unknown))
        self.roster.remove(member)

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


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    # Version 0 knows only the session timeout.
    return max(request.rebalance_timeout_ms, 0) or request.session_timeout_ms
