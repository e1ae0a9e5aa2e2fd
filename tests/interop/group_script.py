"""Scripts of raw group requests, for two brokers to be compared by their answers.

Member ids differ from broker to broker, so a script names its members itself (`a`, `b`), and an
answer's ids are translated back.
"""

from contextlib import ExitStack
from threading import Event
from typing import Any, Self

from pyclient.protocol.messages.delete_groups import DeleteGroupsRequest
from pyclient.protocol.messages.describe_groups import DescribeGroupsRequest
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pyclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pyclient.protocol.messages.list_groups import ListGroupsRequest
from pyclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from pyclient.protocol.schema import Message
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.offset_requests import offset_commit_request, offset_fetch_request
from tests.support.subscriptions import subscription

TOPIC = "scripted"
RETRIED = {14, 15, 16}  # the coordinator is loading: after the first look-up, for a moment


class GroupScript:
    """One group on one broker; each member has a connection of its own."""

    def __init__(self, port: int, group_id: str) -> None:
        self.port = port
        self.group_id = group_id
        self.ids: dict[str, str] = {}
        self._names: dict[str, str] = {"": ""}
        self._clients: dict[str, RawClient] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._settle(FindCoordinatorRequest(coordinator_keys=[self.group_id]), 4)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _settle(self, request: Message, version: int) -> None:
        for _ in range(100):
            if self.ask("admin", request, version).coordinators[0].error_code not in RETRIED:
                break
            Event().wait(0.1)
        for _ in range(100):
            if self.describe()["error"] not in RETRIED:
                return
            Event().wait(0.1)
        raise AssertionError("the coordinator never came")

    def client(self, name: str) -> RawClient:
        """The connection of a member."""
        if name not in self._clients:
            self._clients[name] = self._stack.enter_context(RawClient(self.port))
        return self._clients[name]

    def ask(self, name: str, request: Message, version: int) -> Any:
        """Send a request, and wait for its response."""
        return self.client(name).ask(request, version)

    def pause(self, seconds: float) -> None:
        """Let real time pass: both brokers have real clocks."""
        Event().wait(seconds)

    # --- membership --------------------------------------------------------------------------

    def start_join(self, name: str, version: int = 9, **fields: Any) -> None:
        """Send a JoinGroup; `joined` takes the answer."""
        metadata = fields.pop("metadata", subscription(TOPIC))
        assignors = fields.pop("assignors", ("range",))
        request = JoinGroupRequest(
            **{
                "group_id": self.group_id,
                "session_timeout_ms": 30_000,
                "rebalance_timeout_ms": 30_000,
                "member_id": self.ids.get(name, ""),
                "protocol_type": "consumer",
                **fields,
            },
            protocols=[JoinGroupRequestProtocol(name=one, metadata=metadata) for one in assignors],
        )
        self.client(name).send(request, version)

    def joined(self, name: str) -> dict[str, Any]:
        """What a member was told about its join."""
        response = self.client(name).receive()
        if response.member_id and self._names.get(response.member_id) is None:
            self.ids[name] = response.member_id
            self._names[response.member_id] = name
        return {
            "error": response.error_code,
            "generation": response.generation_id,
            "type": response.protocol_type,
            "protocol": response.protocol_name or None,  # ours is empty with an error, theirs null
            "leader": self._names.get(response.leader, "?"),
            "id": self._names.get(response.member_id, "?"),
            "skip": response.skip_assignment,
            "members": sorted(
                (self._names.get(one.member_id, "?"), one.group_instance_id, one.metadata)
                for one in response.members
            ),
        }

    def join(self, name: str, version: int = 9, **fields: Any) -> dict[str, Any]:
        """Join and wait; a new member joins a second time with its id."""
        self.start_join(name, version, **fields)
        answer = self.joined(name)
        if answer["error"] == 79:
            self.start_join(name, version, **fields)
            answer = self.joined(name)
        return answer

    def start_sync(self, name: str, generation: int, version: int = 5, **fields: Any) -> None:
        """Send a SyncGroup; `synced` takes the answer."""
        given = fields.pop("assignments", {})
        request = SyncGroupRequest(
            **{
                "group_id": self.group_id,
                "generation_id": generation,
                "member_id": self.ids.get(name, ""),
                "protocol_type": "consumer",
                "protocol_name": "range",
                **fields,
            },
            assignments=[
                SyncGroupRequestAssignment(member_id=self.ids[one], assignment=content)
                for one, content in given.items()
            ],
        )
        self.client(name).send(request, version)

    def synced(self, name: str) -> tuple[int, bytes, str | None]:
        """What a member was told about its sync."""
        response = self.client(name).receive()
        return response.error_code, response.assignment, response.protocol_name

    def sync(self, name: str, generation: int, **fields: Any) -> tuple[int, bytes, str | None]:
        self.start_sync(name, generation, **fields)
        return self.synced(name)

    def heartbeat(self, name: str, generation: int, **fields: Any) -> int:
        request = HeartbeatRequest(
            **{
                "group_id": self.group_id,
                "generation_id": generation,
                "member_id": self.ids.get(name, ""),
                **fields,
            }
        )
        code: int = self.ask(name, request, 4).error_code
        return code

    def leave(self, *names: str, instances: tuple[str, ...] = (), version: int = 5) -> Any:
        request = LeaveGroupRequest(group_id=self.group_id)
        if version < 3:
            request.member_id = self.ids.get(names[0], names[0])
        else:
            request.members = [
                MemberIdentity(member_id=self.ids.get(one, one), group_instance_id=None)
                for one in names
            ] + [MemberIdentity(member_id="", group_instance_id=one) for one in instances]
        response = self.ask("admin", request, version)
        return response.error_code, [one.error_code for one in response.members]

    # --- offsets and administration ----------------------------------------------------------

    def commit(self, name: str, generation: int, version: int = 9, **fields: Any) -> int:
        partition = fields.pop("topic", TOPIC), fields.pop("partition", 0)
        request = offset_commit_request(
            fields.pop("group_id", self.group_id),
            {partition: fields.pop("offset", 5)},
            **{
                "generation_id_or_member_epoch": generation,
                "member_id": self.ids.get(name, ""),
                **fields,
            },
        )
        code: int = self.ask(name, request, version).topics[0].partitions[0].error_code
        return code

    def commit_several(
        self, name: str, generation: int, *partitions: tuple[str, int], metadata: str = ""
    ) -> list[tuple[str, int, int]]:
        """Commit the same offset of several partitions; the error of each."""
        request = offset_commit_request(
            self.group_id,
            {},
            generation_id_or_member_epoch=generation,
            member_id=self.ids.get(name, ""),
        )
        for one in partitions:  # an entry each, also of the same topic
            request.topics += offset_commit_request("", {one: 5}, metadata=metadata).topics
        return sorted(
            (topic.name, one.partition_index, one.error_code)
            for topic in self.ask(name, request, 9).topics
            for one in topic.partitions
        )

    def fetch_offsets(self, *topics: tuple[str, list[int]]) -> list[tuple[str, int, int, int]]:
        """Topic, partition, offset and error, in the order of the answer."""
        (group,) = self.ask("admin", offset_fetch_request(self.group_id, topics), 9).groups
        return [
            (topic.name, one.partition_index, one.committed_offset, one.error_code)
            for topic in group.topics
            for one in topic.partitions
        ]

    def committed(self) -> dict[tuple[str, int], tuple[int, str]]:
        (group,) = self.ask("admin", offset_fetch_request(self.group_id, None), 9).groups
        return {
            (topic.name, one.partition_index): (one.committed_offset, one.metadata)
            for topic in group.topics
            for one in topic.partitions
        }

    def delete_offsets(self, *partitions: tuple[str, int], group_id: str | None = None) -> Any:
        request = OffsetDeleteRequest(
            group_id=self.group_id if group_id is None else group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
                )
                for topic, index in partitions
            ],
        )
        response = self.ask("admin", request, 0)
        codes = {
            (topic.name, one.partition_index): one.error_code
            for topic in response.topics
            for one in topic.partitions
        }
        return response.error_code, codes

    def describe(self, version: int = 6, group_id: str | None = None) -> dict[str, Any]:
        wanted = self.group_id if group_id is None else group_id
        request = DescribeGroupsRequest(groups=[wanted], include_authorized_operations=True)
        (group,) = self.ask("admin", request, version).groups
        return {
            "error": group.error_code,
            "message": group.error_message,
            "state": group.group_state,
            "type": group.protocol_type,
            "protocol": group.protocol_data,
            "operations": group.authorized_operations,
            "members": sorted(
                (
                    self._names.get(one.member_id, "?"),
                    one.group_instance_id,
                    one.client_id,
                    one.client_host,
                    one.member_metadata,
                    one.member_assignment,
                )
                for one in group.members
            ),
        }

    def listed(self, **filters: Any) -> list[tuple[str, str, str, str]]:
        response = self.ask("admin", ListGroupsRequest(**filters), 5)
        return [
            (one.group_id, one.protocol_type, one.group_state, one.group_type)
            for one in response.groups
            if one.group_id == self.group_id
        ]

    def delete(self, group_id: str | None = None) -> int:
        wanted = self.group_id if group_id is None else group_id
        ((_, code),) = self.delete_several(wanted)
        return code

    def delete_several(self, *group_ids: str) -> list[tuple[str, int]]:
        """The result of each group."""
        request = DeleteGroupsRequest(groups_names=list(group_ids))
        return sorted(
            (one.group_id, one.error_code) for one in self.ask("admin", request, 2).results
        )
