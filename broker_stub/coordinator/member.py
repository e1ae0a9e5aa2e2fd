"""One member of a classic group, as its coordinator sees it. Serving thread only."""

from __future__ import annotations

from broker_stub.purgatory import Timer
from broker_stub.request import Parked
from pyclient.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupResponse


class Member:
    """Its identity, what it supports, what it was given, and the requests that wait for it."""

    __slots__ = ("assignment", "client_host", "client_id", "group_instance_id", "join",
                 "member_id", "protocols", "rebalance_timeout_ms", "session_timeout_ms",
                 "session_timer", "sync")  # fmt: skip

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: list[JoinGroupRequestProtocol],
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = b""
        self.join: Parked[JoinGroupResponse] | None = None
        self.sync: Parked[SyncGroupResponse] | None = None
        self.session_timer: Timer | None = None

    @property
    def is_static(self) -> bool:
        """Whether it comes back under the same instance id after a restart."""
        return self.group_instance_id is not None

    @property
    def awaits_join(self) -> bool:
        """Whether its JoinGroup is parked, and its client still there to be answered."""
        return self.join is not None and not self.join.abandoned

    @property
    def awaits_answer(self) -> bool:
        """Whether it waits for us: then it cannot send heartbeats, and must not be expired."""
        return self.awaits_join or (self.sync is not None and not self.sync.abandoned)

    def supports(self, protocol_name: str) -> bool:
        """Whether the assignor is among those it named."""
        return any(one.name == protocol_name for one in self.protocols)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its subscription in the form that the assignor understands."""
        for one in self.protocols:
            if one.name == protocol_name:
                return one.metadata
        return b""

    def answer_join(self, response: JoinGroupResponse) -> None:
        """Answer the parked JoinGroup, if there is one."""
        parked, self.join = self.join, None
        if parked is not None:
            parked.answer(response)

    def answer_sync(self, response: SyncGroupResponse) -> None:
        """Answer the parked SyncGroup, if there is one."""
        parked, self.sync = self.sync, None
        if parked is not None:
            parked.answer(response)

    def stop_timer(self) -> None:
        """No longer expire."""
        if self.session_timer is not None:
            self.session_timer.cancel()
            self.session_timer = None
