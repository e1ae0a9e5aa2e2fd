"""What a JoinGroup request means to a group: new, pending, returning and static members.

A pending member has been given an id and has not joined with it yet (KIP-394). What the group does
next (rebalance, wait, answer) is decided in `classic_group`. Serving thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_stub.coordinator.groups.group_state import GroupState, JoinTerms
from broker_stub.coordinator.groups.member import Member
from broker_stub.coordinator.groups.roster import rebalance_timeout_ms
from broker_stub.coordinator.groups.session_expiration import Session
from broker_stub.purgatory import Timers
from broker_stub.request import Parked
from pyclient.entropy import Entropy
from pyclient.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    KafkaError,
    MemberIdRequiredError,
)
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from broker_stub.coordinator.groups.classic_group import ClassicGroup


class Admission:
    """Handles the joins of one group."""

    def __init__(
        self, group: ClassicGroup, timers: Timers, entropy: Entropy, max_size: int
    ) -> None:
        self._group = group
        self._timers = timers
        self._entropy = entropy
        self._max_size = max_size
        self._pending: dict[str, Session] = {}

    @property
    def has_pending_members(self) -> bool:
        """Whether a member id was handed out that nobody has joined with yet."""
        return bool(self._pending)

    def join(
        self, request: JoinGroupRequest, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        """Add a member, or let one rejoin.

        Raises:
            KafkaError: the join is refused.
        """
        group = self._group
        if group.state is GroupState.DEAD:
            raise CoordinatorNotAvailableError(f"group {group.group_id} was deleted; join again")
        self._check_size(request)
        self._check_protocols(request)
        if not request.member_id:
            return self._join_new(request, terms)
        if request.member_id in self._pending and request.group_instance_id is None:
            self._pending.pop(request.member_id).end()
            return self._add(request.member_id, request, terms)
        member = group.roster.find(request.member_id, request.group_instance_id)
        return self._rejoin(member, request)

    def _check_size(self, request: JoinGroupRequest) -> None:
        group = self._group
        member = group.roster.get(request.member_id)
        if group.state is GroupState.EMPTY:
            return
        if group.state is GroupState.PREPARING_REBALANCE:
            # The members that have joined count, not all: after `group.max.size` was lowered,
            # those that rejoin last have to go.
            is_in = member is not None and member.awaits_join
            size = len(group.roster.awaiting_join())
        else:
            is_in = member is not None
            size = len(group.roster)
        if is_in or size < self._max_size:
            return
        self.drop_pending(request.member_id)
        if member is not None:
            group.remove(member)
        group.complete_join_if_all_joined()
        raise GroupMaxSizeReachedError(
            f"group {group.group_id} has {size} members; group.max.size is {self._max_size}"
        )

    def _check_protocols(self, request: JoinGroupRequest) -> None:
        group = self._group
        names = [one.name for one in request.protocols]
        if not request.protocol_type or not names:
            raise InconsistentGroupProtocolError("a member needs a protocol type and a protocol")
        if group.state is GroupState.EMPTY:
            return
        if request.protocol_type != group.protocol_type:
            raise InconsistentGroupProtocolError(
                f"group {group.group_id} has the protocol type {group.protocol_type}, "
                f"not {request.protocol_type}"
            )
        if not group.roster.share_one_of(names):
            raise InconsistentGroupProtocolError(
                f"not all members of group {group.group_id} support one of {', '.join(names)}"
            )

    # --- new members -------------------------------------------------------------------------

    def _join_new(
        self, request: JoinGroupRequest, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        instance_id = request.group_instance_id
        member_id = self._unused_id(terms.client_id if instance_id is None else instance_id)
        if instance_id is None and terms.member_id_required:
            return self._hand_out(member_id, request)
        if instance_id is not None:
            known = self._group.roster.find_static(instance_id)
            if known is not None:
                return self._replace(known, _member(member_id, request, terms), terms)
        return self._add(member_id, request, terms)

    def _unused_id(self, prefix: str) -> str:
        # With a seeded source of randomness, a restarted broker draws the same ids again.
        while True:
            member_id = f"{prefix}-{_uuid_text(self._entropy.uuid())}"
            if member_id not in self._pending and self._group.roster.get(member_id) is None:
                return member_id

    def _hand_out(self, member_id: str, request: JoinGroupRequest) -> JoinGroupResponse:
        # Added at once, a client that misses the answer and retries would leave a member behind.
        def expire() -> None:
            self.drop_pending(member_id)
            self._group.complete_join_if_all_joined()

        self._pending[member_id] = Session(self._timers, request.session_timeout_ms, expire)
        return JoinGroupResponse(error_code=MemberIdRequiredError.code, member_id=member_id)

    def drop_pending(self, member_id: str) -> bool:
        """Forget a pending member; False if there is none with this id."""
        session = self._pending.pop(member_id, None)
        if session is None:
            return False
        session.end()
        return True

    def close(self) -> None:
        """The group is dead: forget its pending members."""
        for session in self._pending.values():
            session.end()
        self._pending.clear()

    def _add(
        self, member_id: str, request: JoinGroupRequest, terms: JoinTerms
    ) -> Parked[JoinGroupResponse]:
        member = _member(member_id, request, terms)
        member.is_new = True
        self._group.add(member, request.protocol_type)
        return self._group.park_join(member)

    # --- returning members -------------------------------------------------------------------

    def _rejoin(
        self, member: Member, request: JoinGroupRequest
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        group = self._group
        is_unchanged = member.protocols == request.protocols
        leads = member.member_id == group.roster.leader_id
        missed_answer = is_unchanged and (
            group.state is GroupState.COMPLETING_REBALANCE
            # A leader that joins a stable group wants a rebalance: partitions were added, say.
            or (group.state is GroupState.STABLE and not leads)
        )
        if missed_answer:
            group.sessions.renew(member)
            return group.join_response(member)
        group.roster.update(member, request)
        return group.park_join(member)

    def _replace(
        self, old: Member, member: Member, terms: JoinTerms
    ) -> JoinGroupResponse | Parked[JoinGroupResponse]:
        """A static member was restarted: the new member takes over from the old one."""
        group = self._group
        old.refuse(FencedInstanceIdError.code)
        group.sessions.end(old)
        old_leader_id = group.roster.leader_id
        member.assignment = old.assignment
        group.replace(old, member)
        if group.state is not GroupState.STABLE:
            return group.park_join(member)
        if group.roster.elect_protocol() != group.protocol_name:
            return group.park_join(member)
        try:
            group.persist()
        except KafkaError:
            group.replace(member, old)  # the log still has it
            group.sessions.renew(old)
            raise
        group.sessions.renew(member)
        return self._answer_replaced(member, old_leader_id, terms)

    def _answer_replaced(
        self, member: Member, old_leader_id: str | None, terms: JoinTerms
    ) -> JoinGroupResponse:
        # Nothing changed for the others, so there is no rebalance. A leader too old to be told to
        # skip its assignment is named its old id as leader, and takes itself for a follower.
        response = self._group.join_response(member)
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
        rebalance_timeout_ms(request),
        request.protocols,
    )


def _uuid_text(raw: bytes) -> str:
    parts = (raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
    return "-".join(part.hex() for part in parts)
