"""The members of a classic group: by id and by instance id, and which of them leads."""

from collections import Counter
from collections.abc import Iterator

from broker_stub.coordinator.groups.member import Member
from pyclient.errors import FencedInstanceIdError, UnknownMemberIdError
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponseMember


class Roster:
    """The members of one group, in the order they joined. Serving thread only."""

    def __init__(self) -> None:
        self.leader_id: str | None = None
        self._members: dict[str, Member] = {}
        self._static: dict[str, str] = {}  # instance id -> member id
        self._support: Counter[str] = Counter()  # assignor -> how many members named it

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __contains__(self, member: Member) -> bool:
        return self._members.get(member.member_id) is member

    def add(self, member: Member) -> None:
        """Add a member. The first one leads."""
        self._members[member.member_id] = member
        self._support.update({one.name for one in member.protocols})
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member: Member) -> None:
        """Remove a member. If it led, the oldest remaining one leads."""
        del self._members[member.member_id]
        self._support.subtract({one.name for one in member.protocols})
        if member.group_instance_id is not None:
            self._static.pop(member.group_instance_id, None)
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self._members), None)

    def replace(self, old: Member, member: Member) -> None:
        """Put a member in another's place. If that one led, the new one does."""
        led = self.leader_id == old.member_id
        self.remove(old)
        self.add(member)
        if led:
            self.leader_id = member.member_id

    def update(self, member: Member, request: JoinGroupRequest) -> None:
        """Take over what a member says about itself when it joins again."""
        self._support.subtract({one.name for one in member.protocols})
        member.protocols = request.protocols
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms(request)
        self._support.update({one.name for one in member.protocols})

    def get(self, member_id: str) -> Member | None:
        """The member with this id."""
        return self._members.get(member_id)

    def find(self, member_id: str, group_instance_id: str | None = None) -> Member:
        """The member with this id.

        Raises:
            UnknownMemberIdError: there is none, or none with this instance id.
            FencedInstanceIdError: another member has taken over the instance id.
        """
        if group_instance_id is not None:
            current = self._static.get(group_instance_id)
            if current is None:
                raise UnknownMemberIdError(f"no member has the instance id {group_instance_id}")
            if current != member_id:
                raise FencedInstanceIdError(
                    f"instance id {group_instance_id} now belongs to member {current}"
                )
        member = self._members.get(member_id)
        if member is None:
            raise UnknownMemberIdError(f"no member has the id {member_id!r}")
        return member

    def find_static(self, group_instance_id: str) -> Member | None:
        """The member with this instance id."""
        member_id = self._static.get(group_instance_id)
        return None if member_id is None else self._members[member_id]

    def awaiting_join(self) -> list[Member]:
        """The members whose JoinGroup is parked."""
        return [member for member in self if member.awaits_join]

    def longest_rebalance_ms(self) -> int:
        """The longest rebalance timeout of all members."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    def share_one_of(self, protocol_names: list[str]) -> bool:
        """Whether all members support one of these assignors."""
        return any(self._support[name] == len(self) for name in protocol_names)

    def elect_protocol(self) -> str:
        """The assignor with the most votes. Each member votes for the first that all support."""
        votes = Counter(
            next(one.name for one in member.protocols if self._support[one.name] == len(self))
            for member in self
        )
        return max(votes, key=lambda name: votes[name])  # of several, the first that got a vote

    def describe(self, protocol_name: str | None) -> list[JoinGroupResponseMember]:
        """All members' subscriptions, for the leader."""
        return [
            JoinGroupResponseMember(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                metadata=one.metadata(protocol_name),
            )
            for one in self
        ]


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """A member's rebalance timeout. Version 0 has none: its session timeout counts."""
    return max(request.rebalance_timeout_ms, 0) or request.session_timeout_ms
