"""Who is in a classic group: members by id and by instance id, and which of them leads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from broker_stub.coordinator.member import Member
from pyclient.errors import (
    FencedInstanceIdError,
    InconsistentGroupProtocolError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponseMember


class Roster:
    """The members of one group, in the order they came. Serving thread only."""

    def __init__(self) -> None:
        self.leader_id: str | None = None
        self._members: dict[str, Member] = {}
        self._static: dict[str, str] = {}  # instance id -> member id

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __contains__(self, member: Member) -> bool:
        return self._members.get(member.member_id) is member

    def add(self, member: Member) -> None:
        """Take a member in; the first one leads."""
        self._members[member.member_id] = member
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member: Member) -> None:
        """Let a member go; if it led, the longest-serving one leads."""
        del self._members[member.member_id]
        if member.group_instance_id is not None:
            self._static.pop(member.group_instance_id, None)
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self._members), None)

    def replace(self, old: Member, member: Member) -> None:
        """Put a member in another's place; if that one led, the new one does."""
        led = self.leader_id == old.member_id
        self.remove(old)
        self.add(member)
        if led:
            self.leader_id = member.member_id

    def find(self, member_id: str, group_instance_id: str | None = None) -> Member:
        """The member of that id.

        Raises:
            UnknownMemberIdError: there is none.
            FencedInstanceIdError: its instance has come back under another id.
        """
        if group_instance_id is not None:
            known = self._static.get(group_instance_id)
            if known is not None and known != member_id:
                raise FencedInstanceIdError(f"{group_instance_id} has come back as {known}")
        member = self._members.get(member_id)
        if member is None:
            raise UnknownMemberIdError(f"no member {member_id}")
        return member

    def find_static(self, group_instance_id: str) -> Member | None:
        """The member of that instance id."""
        member_id = self._static.get(group_instance_id)
        return None if member_id is None else self._members[member_id]

    def joined(self) -> list[Member]:
        """Those whose JoinGroup waits for an answer."""
        return [member for member in self if member.awaits_join]

    def longest_rebalance_ms(self) -> int:
        """How long a rebalance waits for the slowest."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    def check_common_protocol(self, request: JoinGroupRequest) -> None:
        """Refuse a member that shares no assignor with all the others."""
        others = [one for one in self if one.member_id != request.member_id]
        names = [one.name for one in request.protocols]
        if others and not any(all(one.supports(name) for one in others) for name in names):
            raise InconsistentGroupProtocolError(
                f"none of {', '.join(names)} is supported by all members of {request.group_id}"
            )

    def elect_protocol(self) -> str:
        """The assignor that most members prefer among those that all support."""
        members = list(self)
        common = [
            one.name
            for one in members[0].protocols
            if all(member.supports(one.name) for member in members)
        ]
        votes = Counter(
            next(one.name for one in member.protocols if one.name in common) for member in members
        )
        return max(common, key=lambda name: votes[name])  # the first of the most wanted

    def elects(self, protocol_name: str | None) -> bool:
        """Whether the members, as they are now, would take this assignor."""
        return len(self) > 0 and self.elect_protocol() == protocol_name

    def described(self, protocol_name: str | None) -> list[JoinGroupResponseMember]:
        """Everybody's subscription, for the leader."""
        return [
            JoinGroupResponseMember(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                metadata=one.metadata(protocol_name),
            )
            for one in self
        ]
