"""One member of a classic group. Serving thread only."""

from broker_stub.coordinator.groups.session_expiration import Session
from broker_stub.request import Parked
from pyclient.error_codes import RebalanceInProgressError, UnknownMemberIdError
from pyclient.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from pyclient.protocol.messages.sync_group import SyncGroupResponse


class Member:
    """Its identity, assignors, assignment and parked requests.

    A member is new until it has been in a generation.
    """

    __slots__ = ("assignment", "client_host", "client_id", "group_instance_id", "is_new", "join",
                 "member_id", "protocols", "rebalance_timeout_ms", "session",
                 "session_timeout_ms", "sync")  # fmt: skip

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
        self.is_new = False
        self.join: Parked[JoinGroupResponse] | None = None
        self.sync: Parked[SyncGroupResponse] | None = None
        self.session: Session | None = None

    @property
    def is_static(self) -> bool:
        """Whether it keeps its place over a restart."""
        return self.group_instance_id is not None

    @property
    def awaits_join(self) -> bool:
        """Whether its JoinGroup is parked and its client still connected."""
        return self.join is not None and not self.join.abandoned

    @property
    def awaits_sync(self) -> bool:
        """Whether its SyncGroup is parked and its client still connected."""
        return self.sync is not None and not self.sync.abandoned

    def supports(self, protocol_name: str) -> bool:
        """Whether it named the assignor."""
        return any(one.name == protocol_name for one in self.protocols)

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its subscription for the assignor."""
        for one in self.protocols:
            if one.name == protocol_name:
                return one.metadata
        return b""

    def park_join(self) -> Parked[JoinGroupResponse]:
        """Park a JoinGroup. One that is parked already is told to join again."""
        error = RebalanceInProgressError.code
        self.answer_join(JoinGroupResponse(error_code=error, member_id=self.member_id))
        self.join = Parked()
        return self.join

    def park_sync(self) -> Parked[SyncGroupResponse]:
        """Park a SyncGroup. One that is parked already is told to join again."""
        self.answer_sync(SyncGroupResponse(error_code=RebalanceInProgressError.code))
        self.sync = Parked()
        return self.sync

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

    def refuse(self, error_code: int) -> None:
        """Answer whatever is parked with an error. An unknown member has no id any more."""
        member_id = "" if error_code == UnknownMemberIdError.code else self.member_id
        self.answer_join(JoinGroupResponse(error_code=error_code, member_id=member_id))
        self.answer_sync(SyncGroupResponse(error_code=error_code))
