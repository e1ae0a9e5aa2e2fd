"""Who may join a classic group, and as whom: new, promised, returning and static members.

Decides what a JoinGroup request means for the group's members; what the group then does about
it (rebalance, wait, answer) is `classic_group`'s. Serving thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.coordinator.group_state import GroupState, JoinTerms
from broker_stub.coordinator.member import Member
from broker_stub.purgatory import Timer, Timers
from broker_stub.request import Parked
from pyclient.entropy import Entropy
from pyclient.errors import (
    FencedInstanceIdError,
    InconsistentGroupProtocolError,
    KafkaError,
    MemberIdRequiredError,
)
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from broker_stub.coordinator.classic_group import ClassicGroup


class Admission:
    """The way into one group."""

    def __init__(self, group: ClassicGroup, timers: Timers, entropy: Entropy) -> None:
        self._group = group
        self._timers = timers
        self._entropy = entropy
        self._promised: dict[str, Timer] = {}

    @property
    def awaits_promised(self) -> bool:
        """Whether somebody was given an id, and has not come back with it yet."""
        return bool(self._promised)

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
            return self._add(member_id, request, terms)
        if request.member_id in self._promised:
            self._promised.pop(request.member_id).cancel()
            return self._add(request.member_id, request, terms)
        return self._rejoin(self._group.roster.find(request.member_id), request)

    def _check_protocols(self, request: JoinGroupRequest) -> None:
        group = self._group
        if not request.protocol_type or not request.protocols:
            raise InconsistentGroupProtocolError("no protocol type, or no protocols")
        if len(group.roster) and request.protocol_type != group.protocol_type:
            raise InconsistentGroupProtocolError(
                f"group {group.group_id} is of type {group.protocol_type}, "
                f"not {request.protocol_type}"
            )
        group.roster.check_common_protocol(request)

    # -- ids that were given out ---------------------------------------------------------------

    def _promise(self, member_id: str, request: JoinGroupRequest) -> JoinGroupResponse:
        # A client whose first answer is lost would otherwise leave a ghost behind (KIP-394).
        def expire() -> None:
            self.break_promise(member_id)

        self._promised[member_id] = self._timers.after(request.session_timeout_ms, expire)
        return JoinGroupResponse(error_code=MemberIdRequiredError.code, member_id=member_id)

    def break_promise(self, member_id: str) -> bool:
        """Wait no longer for an id that was given out; whether it was."""
        timer = self._promised.pop(member_id, None)
        if timer is None:
            return False
        timer.cancel()
        self._group.complete_join_if_all_are_here()
        return True

    # -- members -------------------------------------------------------------------------------

    def _add(
        self, member_id: str, request: JoinGroupRequest, terms: JoinTerms
    ) -> Parked[JoinGroupResponse]:
        group = self._group
        group.add(_member(member_id, request, terms), request.protocol_type)
        return group.park_join(
            group.roster.find(member_id),
            rebalance=group.state is not GroupState.PREPARING_REBALANCE,
        )

    def _rejoin(
        self, member: Member, request: JoinGroupRequest
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        group = self._group
        settled = group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        leads = member.member_id == group.roster.leader_id and group.state is GroupState.STABLE
        if settled and not leads and member.protocols == request.protocols:
            # It missed our answer. A leader's join in a stable group is a demand to rebalance.
            group.renew(member)
            return group.joined(member)
        member.protocols = request.protocols
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        return group.park_join(member, rebalance=settled)

    def _join_static(
        self, request: JoinGroupRequest, terms: JoinTerms, instance_id: str
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        roster = self._group.roster
        if request.member_id:
            return self._rejoin(roster.find(request.member_id, instance_id), request)
        member_id = f"{instance_id}-{self._entropy.uuid().hex()}"
        known = roster.find_static(instance_id)
        if known is None:
            return self._add(member_id, request, terms)
        return self._replace(known, _member(member_id, request, terms), terms)

    def _replace(
        self, old: Member, member: Member, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        """A static member is back after a restart: it takes its predecessor's place."""
        group = self._group
        fenced = FencedInstanceIdError.code
        old.answer_join(JoinGroupResponse(error_code=fenced, member_id=old.member_id))
        old.answer_sync(SyncGroupResponse(error_code=fenced))
        old.stop_timer()
        old_leader_id = group.roster.leader_id
        member.assignment = old.assignment
        group.roster.replace(old, member)
        if group.state is GroupState.STABLE and group.roster.elects(group.protocol_name):
            try:
                group.keep()
            except KafkaError:
                group.roster.replace(member, old)  # after a restart it would be there again
                group.renew(old)
                raise
            group.renew(member)
            return self._answer_returned(member, old_leader_id, terms)
        return group.park_join(member, rebalance=group.state is not GroupState.PREPARING_REBALANCE)

    def _answer_returned(
        self, member: Member, old_leader_id: str | None, terms: JoinTerms
    ) -> JoinGroupResponse:
        # Nothing changed, so nobody rebalances. A leader that can't be told to skip its
        # assignment is told of its own past id instead, so that it takes itself for a follower.
        response = self._group.joined(member)
        if terms.can_skip_assignment:
            response.skip_assignment = member.member_id == self._group.roster.leader_id
        else:
            response.leader = old_leader_id or ""
            response.members = []
        return response


def _member(member_id: str, request: JoinGroupRequest, terms: JoinTerms) -> Member:
    return Member(
        member_id,
        request.group_instance_id,
        terms.client_id,
        terms.client_host,
        request.session_timeout_ms,
        _rebalance_timeout_ms(request),
        request.protocols,
    )


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    # Version 0 knows only the session timeout.
    return max(request.rebalance_timeout_ms, 0) or request.session_timeout_ms
