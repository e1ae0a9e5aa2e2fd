"""A member of a classic group, request by request, in whatever versions a test wants."""

from typing import Any

from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pyclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.node_harness import NodeHarness, Pending
from tests.support.offset_requests import offset_commit_request

SESSION_MS = 10_000
REBALANCE_MS = 60_000


class GroupMember:
    """What one client knows of its membership: its id, and the generation it is in."""

    def __init__(
        self,
        harness: NodeHarness,
        *,
        join: int = 9,
        sync: int = 5,
        heartbeat: int = 4,
        leave: int = 5,
        instance_id: str | None = None,
        group_id: str = "group",
    ) -> None:
        self.harness = harness
        self.versions = {"join": join, "sync": sync, "heartbeat": heartbeat, "leave": leave}
        self.group_id = group_id
        self.instance_id = instance_id
        self.member_id = ""
        self.generation_id = -1

    def start_join(
        self, *assignors: str, metadata: bytes = b"subscription", **fields: Any
    ) -> Pending:
        """Send a JoinGroup; with an id first, if the broker wants one."""
        request = JoinGroupRequest(
            **{
                "group_id": self.group_id,
                "session_timeout_ms": SESSION_MS,
                "rebalance_timeout_ms": REBALANCE_MS,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                "protocol_type": "consumer",
                **fields,
            },
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name in assignors or ("range",)
            ],
        )
        return self.harness.start(request, self.versions["join"])

    def join(self, *assignors: str, **fields: Any) -> Any:
        """Join a group that waits for nobody else; the response."""
        pending = self.start_join(*assignors, **fields)
        if self.versions["join"] >= 4 and self.instance_id is None and not self.member_id:
            self.member_id = pending.response.member_id
            pending = self.start_join(*assignors, **fields)
        return self.joined(pending)

    def joined(self, pending: Pending) -> Any:
        """Take in the answer to a JoinGroup."""
        response = pending.response
        assert response.error_code == 0
        self.member_id, self.generation_id = response.member_id, response.generation_id
        return response

    def start_sync(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> Pending:
        """Send a SyncGroup; the leader's brings the assignments."""
        request = SyncGroupRequest(
            **{
                "group_id": self.group_id,
                "generation_id": self.generation_id,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                **fields,
            },
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=content)
                for member_id, content in (assignments or {}).items()
            ],
        )
        if self.versions["sync"] >= 5:
            request.protocol_type = fields.get("protocol_type", "consumer")
            request.protocol_name = "range"
        return self.harness.start(request, self.versions["sync"])

    def heartbeat(self) -> int:
        """The error code of a Heartbeat."""
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        code: int = self.harness.ask(request, self.versions["heartbeat"]).error_code
        return code

    def leave(self) -> Any:
        """The response to a LeaveGroup, in either of its forms."""
        request = LeaveGroupRequest(group_id=self.group_id)
        if self.versions["leave"] < 3:
            request.member_id = self.member_id
        else:
            request.members = [
                MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
            ]
        return self.harness.ask(request, self.versions["leave"])

    def commit(
        self,
        offset: int,
        *,
        topic: str = "orders",
        metadata: str | None = "",
        version: int = 9,
        **fields: Any,
    ) -> int:
        """Commit partition 0's offset; the error code."""
        request = offset_commit_request(
            self.group_id,
            {(topic, 0): offset},
            metadata=metadata,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id if version >= 7 else None,
            **fields,
        )
        response = self.harness.ask(request, version)
        code: int = response.topics[0].partitions[0].error_code
        return code


def find_coordinator(harness: NodeHarness) -> None:
    """What clients do first; it creates the topic of offsets."""
    assert harness.ask(FindCoordinatorRequest(key="group"), 3).error_code == 0


def stable_pair(harness: NodeHarness, **versions: Any) -> tuple[GroupMember, GroupMember]:
    """A group of two, each with its assignment; the leader comes first."""
    find_coordinator(harness)
    leader, follower = GroupMember(harness, **versions), GroupMember(harness, **versions)
    leader.join()
    leader.start_sync({leader.member_id: b"everything"})
    if follower.versions["join"] >= 4:
        follower.member_id = follower.start_join().response.member_id
    waiting = follower.start_join()
    leader.joined(leader.start_join())
    follower.joined(waiting)
    synced = follower.start_sync()
    leader.start_sync({leader.member_id: b"half", follower.member_id: b"other half"})
    assert synced.response.assignment == b"other half"
    return leader, follower
