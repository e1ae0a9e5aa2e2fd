"""One classic group without a node: its clock, its timers, and what it wrote to the log."""

from typing import Any

from broker_stub.coordinator.groups.classic_group import ClassicGroup
from broker_stub.coordinator.groups.group_state import GroupSettings, JoinTerms
from broker_stub.purgatory import Timers
from broker_stub.request import Parked
from pyclient.clock import ManualClock
from pyclient.entropy import Entropy
from pyclient.error_codes import code_of
from pyclient.errors import KafkaStorageError
from pyclient.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from pyclient.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

SESSION_MS = 10_000
REBALANCE_MS = 60_000


class GroupWorld:
    """One group, its clock, and what was written to the log."""

    def __init__(self, initial_delay_ms: int = 0, max_size: int = 1000) -> None:
        self.clock = ManualClock()
        self.timers = Timers(self.clock)
        self.kept: list[tuple[int, list[str]]] = []
        self.disk_is_full = False
        self.group = ClassicGroup(
            "g",
            timers=self.timers,
            clock=self.clock,
            entropy=Entropy(1),
            settings=GroupSettings(initial_delay_ms, max_size),
            on_change=self.keep,
        )

    def keep(self, group: ClassicGroup) -> None:
        if self.disk_is_full:
            raise KafkaStorageError("no space left")
        self.kept.append((group.generation_id, [one.member_id for one in group.roster]))

    def advance(self, milliseconds: float) -> None:
        self.clock.advance(milliseconds)
        self.timers.fire()

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        metadata: bytes = b"m",
        id_required: bool = False,
        version9: bool = True,
    ) -> Any:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=p, metadata=metadata) for p in protocols],
        )
        return self.group.join(request, JoinTerms("c", "/127.0.0.1", id_required, version9))

    def sync(
        self,
        member_id: str,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
    ) -> Any:
        given = [
            SyncGroupRequestAssignment(member_id=one, assignment=content)
            for one, content in (assignments or {}).items()
        ]
        return self.group.sync(
            SyncGroupRequest(
                group_id="g",
                generation_id=self.group.generation_id,
                member_id=member_id,
                group_instance_id=instance,
                assignments=given,
            )
        )

    def leave(self, member_id: str, instance: str | None = None) -> int:
        """The error code of one member's LeaveGroup."""
        (error,) = self.group.leave([(member_id, instance)])
        return 0 if error is None else code_of(error)

    def stable_pair(self) -> tuple[str, str]:
        """A group of two, each with its assignment; the leader comes first."""
        leader = answer(self.join())
        parked = self.join()
        again = self.join(leader.member_id)
        follower = answer(parked)
        assert answer(again).leader == leader.member_id
        waiting = self.sync(follower.member_id)
        self.sync(leader.member_id, {leader.member_id: b"a", follower.member_id: b"b"})
        assert answer(waiting).assignment == b"b"
        return leader.member_id, follower.member_id


def answer(parked: Any) -> Any:
    """The answer to a parked request, which must have been answered."""
    if isinstance(parked, JoinGroupResponse | SyncGroupResponse):
        return parked
    assert isinstance(parked, Parked)
    assert parked.answered, "still parked"
    answers: list[Any] = []
    parked.deliver_to(answers.append)
    return answers[0]
