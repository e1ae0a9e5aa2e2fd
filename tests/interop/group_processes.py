"""Groups of processes: start, kill, stall and stop members, and check what they did."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

from pyclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from pyclient.protocol.messages.describe_groups import DescribeGroupsRequest
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.broker_load import create_topic
from tests.support.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
SESSION_MS = 3_000
HEARTBEAT_MS = 300
REBALANCE_MS = 10_000
WAIT_SECONDS = 90
LOOK_SECONDS = 0.05

Partition = tuple[str, int]


@contextmanager
def group_server(data_dir: Path, topic: str, partitions: int) -> Iterator[ServerProcess]:
    """A broker process with one topic, which allows the short sessions of the tests."""
    config = ("--config", "group.min.session.timeout.ms=500")
    with ServerProcess("--data-dir", data_dir, *config) as running:
        create_topic(running.bootstrap_servers, topic, partitions)
        yield running


class ForeignProcess:
    """One member. Its standard output is one event a line; a thread reads it."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.assigned: frozenset[Partition] = frozenset()
        self.values: list[str] = []
        self.failure: str | None = None
        self.is_over = False
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as this
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.take(line)

    def take(self, line: str) -> None:
        """Note one line of output."""
        event, content = json.loads(line)
        if event == "assigned":
            self.assigned = frozenset((topic, partition) for topic, partition in content)
        elif event == "records":
            self.values += content
        else:
            self.failure = content

    def kill(self) -> None:
        """Kill the process; the broker is not told."""
        self.process.kill()
        self._end()

    def stall(self) -> None:
        """Do nothing from now on: no polls, no heartbeats, but the connections stay."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Go on after a stall."""
        self.process.send_signal(signal.SIGCONT)

    def leave(self) -> None:
        """Leave the group and end."""
        self.process.send_signal(signal.SIGTERM)
        self._end()

    def _end(self) -> None:
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self._reader.join(10)
        self.is_over = True
        self.assigned = frozenset()

    def errors(self) -> str:
        """What it wrote to standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-2000:]


class ForeignGroup:
    """Members of one group on one broker, over their lives."""

    def __init__(self, port: int, group: str, topic: str, partitions: int) -> None:
        self.port = port
        self.group = group
        self.topic = topic
        self.everything = frozenset((topic, index) for index in range(partitions))
        self.members: list[ForeignProcess] = []
        self._numbers = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            if not member.is_over:
                with suppress(OSError):
                    member.kill()

    def start(
        self,
        library: str,
        assignor: str,
        *,
        instance_id: str | None = None,
        pattern: str | None = None,
        session_ms: int = SESSION_MS,
    ) -> ForeignProcess:
        """Start a member by one of the libraries."""
        options = {
            "bootstrap": f"127.0.0.1:{self.port}",
            "group": self.group,
            "topic": self.topic,
            "pattern": pattern,
            "assignor": assignor,
            "instance_id": instance_id,
            "session_ms": session_ms,
            "heartbeat_ms": HEARTBEAT_MS,
            "rebalance_ms": REBALANCE_MS,
            "metadata_ms": 1_000,
        }
        module = "tests.interop.group_member_process"
        command = [sys.executable, "-m", module, library, json.dumps(options)]
        return self.add(ForeignProcess(self._name(library), command))

    def _name(self, library: str) -> str:
        self._numbers += 1
        return f"{library}-{self._numbers}"

    def add(self, member: ForeignProcess) -> ForeignProcess:
        """Take in a member that was started elsewhere."""
        self.members.append(member)
        return member

    @property
    def alive(self) -> list[ForeignProcess]:
        return [one for one in self.members if not one.is_over]

    def values(self) -> set[str]:
        """What all members together have read and committed."""
        return {value for member in self.members for value in member.values}

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something that members do."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            for member in self.alive:
                assert member.failure is None, f"{member.name}: {member.failure}"
                code = member.process.poll()
                assert code is None, f"{member.name} ended with {code}: {member.errors()}"
            if time.monotonic() > deadline:
                seen = {one.name: sorted(one.assigned) for one in self.members}
                raise AssertionError(
                    f"never {what}: {seen}; broker: {describe(self.port, self.group)}"
                )
            Event().wait(LOOK_SECONDS)

    def wait_until_shared(self, *members: ForeignProcess, spread: int = 1) -> None:
        """Wait until the members own all partitions, each once, in about equal shares."""
        wanted = members or tuple(self.alive)

        def shared() -> bool:
            shares = [one.assigned for one in wanted]
            counts = [len(share) for share in shares]
            return (
                frozenset().union(*shares) == self.everything
                and sum(counts) == len(self.everything)
                and max(counts) - min(counts) <= spread
            )

        self.wait_until(shared, f"shared by {len(wanted)}")

    def wait_until_read(self, values: set[str]) -> None:
        """Wait until all of the values were read."""
        self.wait_until(lambda: values <= self.values(), "read all")


def describe(port: int, group: str) -> dict[str, Any]:
    """The group's state and each member's partitions, as the broker tells them."""
    with RawClient(port) as client:
        client.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4)
        (described,) = client.ask(DescribeGroupsRequest(groups=[group]), 5).groups
    return {
        "state": described.group_state,
        "protocol": described.protocol_data,
        "members": {one.member_id: _partitions(one.member_assignment) for one in described.members},
    }


def _partitions(assignment: bytes) -> list[Partition]:
    if not assignment:
        return []
    message, _ = ConsumerProtocolAssignment.decode_from(memoryview(assignment), 2, 0)
    return [
        (topic.topic, index) for topic in message.assigned_partitions for index in topic.partitions
    ]


@contextmanager
def watching_owners(port: int, group: str) -> Iterator[list[int]]:
    """Poll the group's description: in a stable generation, each partition has one owner.

    Yields the sizes of the stable generations it has seen.
    """
    over = Event()
    sizes: list[int] = []
    wrong: list[str] = []

    def watch() -> None:
        while not over.wait(LOOK_SECONDS):
            with suppress(OSError):  # the broker may be down
                seen = describe(port, group)
                if seen["state"] != "Stable":
                    continue
                owned = [one for partitions in seen["members"].values() for one in partitions]
                if len(owned) != len(set(owned)):
                    wrong.append(str(seen))
                if sizes[-1:] != [len(seen["members"])]:
                    sizes.append(len(seen["members"]))

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield sizes
    finally:
        over.set()
        watcher.join()
    assert not wrong, wrong[0]
