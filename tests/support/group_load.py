"""Members of consumer groups played by one thread over raw sockets: no client library.

Each member has a connection and does what the protocol wants: join, join with its id, sync, send
heartbeats, rejoin. The load is the same for every broker.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from pyclient.error_codes import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    IllegalGenerationError,
    MemberIdRequiredError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.protocol.frame import request_frame
from pyclient.protocol.header import ResponseHeader, response_header_version
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from pyclient.protocol.registry import response_class
from pyclient.protocol.schema import Message
from tests.support.offset_requests import offset_commit_request
from tests.support.subscriptions import assignment, subscription

TOPIC = "load"
SESSION_MS = 30_000
REBALANCE_MS = 60_000
_LENGTH = struct.Struct(">i")
_OFFSET = struct.Struct(">q")
_MARKED_OFFSET = 0x5EED_0FF5_E75E_ED00
_LOADING = {
    CoordinatorLoadInProgressError.code,
    CoordinatorNotAvailableError.code,
    NotCoordinatorError.code,
}
_REJOIN = {RebalanceInProgressError.code, IllegalGenerationError.code}
_RETRY_SECONDS = 0.05


def _decoded(body: bytes, request: type[Message], version: int) -> Any:
    assert request.api_key is not None
    declared = response_class(request.api_key)
    header_version = response_header_version(declared, version)
    _, position = ResponseHeader.decode_from(body, 0, header_version)
    return declared.decode(memoryview(body)[position:], version)


class LoadMember:
    """One member: a socket, one request in flight, and what to do with its answer."""

    def __init__(self, load: GroupLoad, group_id: str) -> None:
        self.load = load
        self.group_id = group_id
        self.member_id = ""
        self.generation_id = -1
        self.is_stable = False
        self.commits = 0
        self.offset = 0
        self.due = 0.0  # when the next heartbeat goes out
        self._received = bytearray()
        self._answer: Callable[[Any], None] | None = None
        self._request: tuple[type[Message], int] | None = None
        self.is_free = True  # no request is in flight
        # The load must not be what is measured, so a commit is encoded once, and then only its
        # offset changes; a response that is the same as the last good one is not decoded.
        self._commit_frame: bytearray | None = None
        self._offset_at = 0
        self._good_commit = b""
        self.socket = socket.create_connection(("127.0.0.1", load.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: Message, version: int, answer: Callable[[Any], None]) -> None:
        parts = request_frame(request, version, 1, "load")
        self._request, self._answer = (type(request), version), answer
        self.is_free = False
        self.socket.sendall(b"".join(parts))  # type: ignore[arg-type]

    def on_readable(self) -> None:
        """Read what arrived; handle a complete frame."""
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise ConnectionError("the broker hung up")
        self._received += piece
        if len(self._received) < 4:
            return
        (length,) = _LENGTH.unpack_from(self._received)
        if len(self._received) < 4 + length:
            return
        body = bytes(self._received[4 : 4 + length])
        del self._received[: 4 + length]
        if self._request is None or self._answer is None:
            self._on_committed(body)
            return
        (request, version), answer = self._request, self._answer
        self._request = self._answer = None
        self.is_free = True
        answer(_decoded(body, request, version))

    # --- the protocol ------------------------------------------------------------------------

    def find(self) -> None:
        self.send(FindCoordinatorRequest(key=self.group_id), 3, self._found)

    def _found(self, response: Any) -> None:
        self._or_retry(response.error_code, self.find, self.join)

    def join(self) -> None:
        self.is_stable = False
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription(TOPIC))],
        )
        self.send(request, 9, self._joined)

    def _joined(self, response: Any) -> None:
        code = response.error_code
        if code == MemberIdRequiredError.code:
            self.member_id = response.member_id
            self.join()
        elif code:
            self._start_over(code)
        else:
            self.member_id, self.generation_id = response.member_id, response.generation_id
            self.sync([one.member_id for one in response.members])

    def sync(self, members: list[str]) -> None:
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=one, assignment=assignment(**{TOPIC: [index]}))
                for index, one in enumerate(members)
            ],
        )
        self.send(request, 5, self._synced)

    def _synced(self, response: Any) -> None:
        if response.error_code:
            self._start_over(response.error_code)
        else:
            self.is_stable = True
            self.due = time.monotonic() + self.load.heartbeat_seconds

    def heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation_id, member_id=self.member_id
        )
        self.due = time.monotonic() + self.load.heartbeat_seconds
        self.send(request, 4, self._beaten)

    def _beaten(self, response: Any) -> None:
        if response.error_code:
            self._start_over(response.error_code)

    def commit(self) -> None:
        """Commit, and again as soon as the answer is there."""
        if self._commit_frame is None:
            request = offset_commit_request(
                self.group_id,
                {(TOPIC, 0): _MARKED_OFFSET},
                generation_id_or_member_epoch=self.generation_id,
                member_id=self.member_id,
            )
            parts = request_frame(request, 9, 1, "load")
            self._commit_frame = bytearray(b"".join(parts))  # type: ignore[arg-type]
            self._offset_at = self._commit_frame.index(_OFFSET.pack(_MARKED_OFFSET))
        self.offset += 1
        _OFFSET.pack_into(self._commit_frame, self._offset_at, self.offset)
        self.is_free = False
        self.socket.sendall(self._commit_frame)

    def _on_committed(self, body: bytes) -> None:
        self.is_free = True
        if body != self._good_commit:
            response = _decoded(body, OffsetCommitRequest, 9)
            code = response.topics[0].partitions[0].error_code
            assert code == 0, f"a commit failed with {code}"
            self._good_commit = body
        self.commits += 1
        if self.load.commits_go_on():
            self.commit()

    def _or_retry(
        self, error_code: int, again: Callable[[], None], then: Callable[[], None]
    ) -> None:
        if error_code in _LOADING:
            self.load.later(again)
        else:
            assert error_code == 0, error_code
            then()

    def _start_over(self, error_code: int) -> None:
        if error_code in _LOADING:
            self.load.later(self.join)
            return
        if error_code == UnknownMemberIdError.code:
            self.member_id = ""
        else:
            assert error_code in _REJOIN, error_code
        self.join()


class GroupLoad:
    """All members, and the loop that runs them."""

    def __init__(self, port: int, heartbeat_seconds: float) -> None:
        self.port = port
        self.heartbeat_seconds = heartbeat_seconds
        self.members: list[LoadMember] = []
        self._selector = selectors.DefaultSelector()
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._commit_end = 0.0

    def settle(self, groups: dict[str, int], limit_seconds: float = 120) -> float:
        """Start members; the seconds until each group is stable with all of them."""
        for group_id, count in groups.items():
            for _ in range(count):
                member = LoadMember(self, group_id)
                self.members.append(member)
                self._selector.register(member.socket, selectors.EVENT_READ, member)
        start = time.monotonic()
        for member in self.members:
            member.find()
        self.run(self._all_are_in_one_generation, limit_seconds)
        return time.monotonic() - start

    def _all_are_in_one_generation(self) -> bool:
        if not all(member.is_stable for member in self.members):
            return False
        generations: dict[str, set[int]] = {}
        for member in self.members:
            generations.setdefault(member.group_id, set()).add(member.generation_id)
        return all(len(ones) == 1 for ones in generations.values())

    def commit_for(self, seconds: float) -> int:
        """Let all members commit, each its next after the answer; how many were answered."""
        self._commit_end = time.monotonic() + seconds
        before = sum(member.commits for member in self.members)
        for member in self.members:
            member.commit()
        self.run(lambda: not self.commits_go_on() and all(one.is_free for one in self.members), 60)
        return sum(member.commits for member in self.members) - before

    def commits_go_on(self) -> bool:
        return time.monotonic() < self._commit_end

    def idle_for(self, seconds: float) -> None:
        """Only heartbeats."""
        end = time.monotonic() + seconds
        self.run(lambda: time.monotonic() >= end, seconds + 60)

    def later(self, action: Callable[[], None]) -> None:
        """Do something after a moment."""
        self._later.append((time.monotonic() + _RETRY_SECONDS, action))

    def run(self, is_over: Callable[[], bool], limit_seconds: float) -> None:
        """Serve the sockets until the condition holds."""
        deadline = time.monotonic() + limit_seconds
        next_beats = 0.0
        while not is_over():
            for key, _ in self._selector.select(0.02):
                key.data.on_readable()
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError(f"{sum(one.is_stable for one in self.members)} are stable")
            due, self._later = (
                [one for one in self._later if one[0] <= now],
                [one for one in self._later if one[0] > now],
            )
            for _, action in due:
                action()
            if now >= next_beats and not self.commits_go_on():
                next_beats = now + 0.05
                for member in self.members:
                    if member.is_stable and member.is_free and member.due <= now:
                        member.heartbeat()

    def close(self) -> None:
        for member in self.members:
            self._selector.unregister(member.socket)
            member.socket.close()
        self._selector.close()
