"""A consumer group as a hypothesis state machine: raw requests to a node, a simulated clock.

Clients join, sync, beat, commit, leave, hang up, vanish and come back in any order, and the broker
is restarted in between. The machine knows only what the protocol promises:

- a generation has one leader and one protocol, and generations only grow;
- in a generation, a partition has one owner;
- every wait has a deadline, and every parked request is answered in the end;
- a group whose members all fell silent is empty after their timeouts.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker_stub.coordinator.groups.group_state import GroupState
from pyclient.error_codes import (
    FencedInstanceIdError,
    IllegalGenerationError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pyclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pyclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.group_member import GroupMember, find_coordinator
from tests.support.node_harness import NodeHarness, Pending

SESSION_MS = 6_000
REBALANCE_MS = 15_000
LONGEST_MS = 60_000
PARTITIONS = range(4)
CLIENTS = 6

START_OVER = {UnknownMemberIdError.code, FencedInstanceIdError.code}
REJOIN = {RebalanceInProgressError.code, IllegalGenerationError.code}

clients = st.integers(0, CLIENTS - 1)


class Client:
    """What one client knows, and the requests it waits for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.instance_id = f"static-{number}" if number >= CLIENTS - 2 else None
        self.join_version = 3 if number == 0 else 9
        self.session_ms = (SESSION_MS, SESSION_MS, 5 * SESSION_MS)[number % 3]
        self.rebalance_ms = (REBALANCE_MS, REBALANCE_MS // 5)[number % 2]
        self.forget()

    def forget(self) -> None:
        """Start over as a new member."""
        self.member_id = ""
        self.generation_id = -1
        self.leads = False
        self.members: list[str] = []
        self.joining: Pending | None = None
        self.syncing: Pending | None = None

    @property
    def waits(self) -> bool:
        return self.joining is not None or self.syncing is not None

    def identity(self, member_id: str) -> str:
        """A static member stays the same over its restarts."""
        return self.instance_id or member_id


class GroupMachine(RuleBasedStateMachine):
    """Random histories of one group."""

    @initialize(delay_ms=st.sampled_from([0, 0, 500]), max_size=st.sampled_from([3, 100]))
    def start(self, delay_ms: int, max_size: int) -> None:
        memory = "/dev/shm"
        self.folder = Path(tempfile.mkdtemp(dir=memory if Path(memory).is_dir() else None))
        self.harness = NodeHarness(
            self.folder,
            **{
                "group.initial.rebalance.delay.ms": delay_ms,
                "group.max.size": max_size,
                "offsets.topic.num.partitions": 1,
            },
        )
        find_coordinator(self.harness)
        self.harness.create_topic("orders", len(PARTITIONS))
        self.clients = [Client(number) for number in range(CLIENTS)]
        self.parked: list[Pending] = []
        self.leaders: dict[int, str] = {}
        self.owners: dict[tuple[int, int], str] = {}
        self.generation_id = 0

    # --- what clients do ---------------------------------------------------------------------

    @rule(number=clients, changed=st.booleans(), twice=st.booleans())
    def join(self, number: int, changed: bool, twice: bool) -> None:
        client = self.clients[number]
        if client.waits and not twice:
            return
        request = JoinGroupRequest(
            group_id="group",
            session_timeout_ms=client.session_ms,
            rebalance_timeout_ms=client.rebalance_ms,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name="range", metadata=b"new" if changed else b"old")
            ],
        )
        client.joining = self._ask(request, client.join_version)
        self._collect()

    @rule(numbers=st.sets(clients, min_size=2), stops_before=st.sampled_from(["", "sync", "lead"]))
    def join_together(self, numbers: set[int], stops_before: str) -> None:
        """Do what well-behaved clients do; chance alone seldom gets a group of several stable."""
        for _ in range(2):  # the second time with the id that the broker handed out
            for number in sorted(numbers):
                self.join(number, changed=False, twice=False)
        for number, client in enumerate(self.clients):
            if client.member_id and number not in numbers:
                self.join(number, changed=False, twice=False)
        if stops_before == "sync":
            return
        for number, client in enumerate(self.clients):
            if not client.leads:
                self.sync(number)
        for number, client in enumerate(self.clients):
            if client.leads and stops_before != "lead":
                self.sync(number)

    @rule(number=clients)
    def sync(self, number: int) -> None:
        client = self.clients[number]
        if client.waits or client.generation_id < 0:
            return
        assignments = []
        if client.leads:
            assignments = [
                SyncGroupRequestAssignment(
                    member_id=member_id,
                    assignment=json.dumps(list(PARTITIONS)[index :: len(client.members)]).encode(),
                )
                for index, member_id in enumerate(client.members)
            ]
        request = SyncGroupRequest(
            group_id="group",
            generation_id=client.generation_id,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        client.syncing = self._ask(request, 5)
        self._collect()

    @rule(number=clients)
    def heartbeat(self, number: int) -> None:
        client = self.clients[number]
        if client.member_id and client.generation_id >= 0:
            self._obey(client, self._member(client).heartbeat())

    @rule(number=clients, offset=st.integers(0, 100))
    def commit(self, number: int, offset: int) -> None:
        client = self.clients[number]
        if client.generation_id >= 0:
            self._obey(client, self._member(client).commit(offset))

    @rule(number=clients)
    def leave(self, number: int) -> None:
        client = self.clients[number]
        if not client.member_id:
            return
        identity = MemberIdentity(member_id=client.member_id, group_instance_id=client.instance_id)
        request = LeaveGroupRequest(group_id="group", members=[identity])
        assert self.harness.ask(request, 5).error_code == 0
        self._collect()
        client.forget()

    @rule(number=clients, comes_back=st.booleans())
    def hang_up(self, number: int, comes_back: bool) -> None:
        """Lose the connection; then come back with the same member id, or as a new process."""
        client = self.clients[number]
        for pending in (client.joining, client.syncing):
            if pending is not None and pending.parked is not None and not pending.arrived:
                pending.parked.abandon()
                self.parked.remove(pending)
        client.joining = client.syncing = None
        if not comes_back:
            client.forget()

    @rule(number=clients, generation=st.integers(-1, 5), stranger=st.booleans())
    def ask_nonsense(self, number: int, generation: int, stranger: bool) -> None:
        """Old generations and unknown members get an error, and change nothing."""
        group = self._group()
        before = None if group is None else (group.state, group.generation_id, len(group.roster))
        member = self._member(self.clients[number])
        member.generation_id = generation
        if stranger or not member.member_id:
            member.member_id, member.instance_id = "stranger", None
        known = group is not None and group.roster.get(member.member_id) is not None
        if known and group is not None and generation == group.generation_id:
            return
        assert member.heartbeat() != 0
        assert member.start_sync().response.error_code != 0
        group = self._group()
        assert before == (
            None if group is None else (group.state, group.generation_id, len(group.roster))
        )

    # --- what happens to the broker ----------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 400, 3_000, SESSION_MS, REBALANCE_MS]))
    def advance(self, milliseconds: int) -> None:
        self.harness.advance(milliseconds)
        self._collect()

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        """Restart the broker: connections break, and what waited on them is not answered."""
        self.harness.restart(clean=clean)
        self.parked.clear()
        for client in self.clients:
            client.joining = client.syncing = None
        group = self._group()
        # A generation that nobody was assigned partitions in is not in the log.
        self.generation_id = 0 if group is None else group.generation_id
        for seen in [one for one in self.leaders if one > self.generation_id]:
            del self.leaders[seen]

    # --- what must hold ----------------------------------------------------------------------

    @invariant()
    def every_wait_has_a_deadline(self) -> None:
        group = self._group() if hasattr(self, "harness") else None
        if group is None:
            return
        now_ms = self.harness.clock.monotonic_ms()
        for member in group.roster:
            assert member.session is not None, f"{member.member_id} has no session"
            assert member.session.pending, f"{member.member_id} never expires"
            if member.awaits_join:
                assert group.state is GroupState.PREPARING_REBALANCE
            if member.awaits_sync:
                assert group.state is GroupState.COMPLETING_REBALANCE
        deadline_ms = group.rebalance_deadline_ms
        if group.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE):
            assert deadline_ms is not None, f"{group.state} without a deadline"
            assert deadline_ms <= now_ms + LONGEST_MS
        elif group.state is GroupState.EMPTY:
            assert not len(group.roster)
            assert deadline_ms is None

    @invariant()
    def generations_only_grow(self) -> None:
        group = self._group() if hasattr(self, "harness") else None
        if group is not None:
            assert group.generation_id >= self.generation_id
            self.generation_id = group.generation_id

    def teardown(self) -> None:
        """All clients fall silent: everything parked is answered, and the group is empty."""
        if not hasattr(self, "harness"):
            return
        try:
            end_ms = self.harness.clock.monotonic_ms() + 4 * LONGEST_MS
            while (now_ms := self.harness.clock.monotonic_ms()) < end_ms:
                deadline_ms = self.harness.node.timers.next_deadline_ms()
                assert deadline_ms is not None
                self.harness.advance(max(min(deadline_ms, end_ms) - now_ms, 0))
                self._collect()
            assert not [one for one in self.parked if not one.arrived], "a request hangs"
            group = self._group()
            assert group is None or group.state is GroupState.EMPTY, group.state
        finally:
            self.harness.node.close()
            shutil.rmtree(self.folder)

    # --- the protocol ------------------------------------------------------------------------

    def _group(self) -> Any:
        groups = self.harness.node.coordinator.groups()
        return groups[0] if groups else None

    def _member(self, client: Client) -> GroupMember:
        member = GroupMember(self.harness, instance_id=client.instance_id)
        member.member_id, member.generation_id = client.member_id, client.generation_id
        return member

    def _ask(self, request: Any, version: int) -> Pending:
        pending = self.harness.start(request, version)
        self.parked.append(pending)
        return pending

    def _collect(self) -> None:
        """Let every client read what has arrived."""
        self.parked = [one for one in self.parked if not one.arrived]
        for client in self.clients:
            if client.joining is not None and client.joining.arrived:
                pending, client.joining = client.joining, None
                self._joined(client, pending.response)
            if client.syncing is not None and client.syncing.arrived:
                pending, client.syncing = client.syncing, None
                self._synced(client, pending.response)

    def _joined(self, client: Client, response: Any) -> None:
        if response.error_code == MemberIdRequiredError.code:
            client.member_id = response.member_id
            return
        if response.error_code:
            self._obey(client, response.error_code)
            return
        client.member_id = response.member_id
        client.generation_id = response.generation_id
        client.leads = response.leader == response.member_id and not response.skip_assignment
        client.members = [one.member_id for one in response.members]
        assert response.protocol_name == "range"
        if not response.skip_assignment:
            leader = self.leaders.setdefault(response.generation_id, response.leader)
            replaced = client.instance_id is not None or leader.startswith("static-")
            assert leader == response.leader or replaced, "two leaders in a generation"

    def _synced(self, client: Client, response: Any) -> None:
        if response.error_code:
            self._obey(client, response.error_code)
            return
        mine = client.identity(client.member_id)
        for partition in json.loads(response.assignment or b"[]"):
            owner = self.owners.setdefault((client.generation_id, partition), mine)
            assert owner == mine, f"partition {partition} belongs to {owner} and to {mine}"

    def _obey(self, client: Client, error_code: int) -> None:
        """React to an error as clients do."""
        if error_code in START_OVER:
            waiting = client.joining, client.syncing
            client.forget()
            client.joining, client.syncing = waiting
        elif error_code in REJOIN:
            client.generation_id = -1
        else:
            assert error_code in (0, 81, 69), error_code  # a full group; a deleted group
            if error_code == 81:
                client.forget()
