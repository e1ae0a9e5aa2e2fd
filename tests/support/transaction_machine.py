"""Transactional producers as a hypothesis state machine: raw requests to a node, a simulated clock.

Producers of three transactional ids begin, write, commit offsets, end, vanish and come back in any
order, by either version of the protocol; old instances go on writing, requests come twice or late,
transactions time out, and the broker is stopped and killed in between. The machine knows only what
transactions promise:

- a reader of committed records sees all records of the committed transactions, in the order of the
  log, and no others; a group's offset is that of the last transaction that committed one;
- what a fenced producer sends changes nothing;
- epochs only grow;
- once every transaction has ended, nothing is undecided in any partition.
"""

import shutil
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.node_harness import NodeHarness
from tests.support.transaction_script import OLD, Producer, TransactionScript

PARTITIONS = 2
IDS = ("a", "b", "c")
TIMEOUT_MS = 30_000

ids = st.sampled_from(IDS)
partitions = st.integers(0, PARTITIONS - 1)


class Client:
    """A producer instance, and what it has done in its transaction."""

    def __init__(self, script: TransactionScript, producer: Producer, *, is_new: bool) -> None:
        self.script = script
        self.producer = producer
        self.is_new = is_new  # speaks transaction version 2
        self.sequences: dict[int, int] = {}
        self.begin()

    def begin(self) -> None:
        """Nothing is in the transaction."""
        self.records: list[tuple[int, bytes]] = []
        self.offset: int | None = None
        self.added: set[int] = set()
        self.deadline_ms: float | None = None

    @property
    def is_open(self) -> bool:
        return bool(self.records) or self.offset is not None or bool(self.added)


class TransactionMachine(RuleBasedStateMachine):
    """One broker, its clients, and what readers must see."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="transactions-"))
        self.harness = NodeHarness(
            self.folder,
            transaction_state_log_num_partitions=2,
            offsets_topic_num_partitions=2,
        )
        self.harness.create_topic("transfers", PARTITIONS)
        self.scripts = {one: TransactionScript(self.harness.ask, one) for one in IDS}
        for script in self.scripts.values():
            script.find()
            script.find(key_type=0, key="tellers")
        self.clients: dict[str, Client] = {}
        self.zombies: list[Client] = []
        self.committed: list[set[bytes]] = [set() for _ in range(PARTITIONS)]
        self.offset = -1
        self.epochs: dict[int, int] = {}
        self.count = 0

    def teardown(self) -> None:
        if hasattr(self, "harness"):
            self.harness.advance(10 * TIMEOUT_MS)
            for index in range(PARTITIONS):
                script = self.scripts["a"]
                ends = [script.end_offset(index, committed_only=one) for one in (True, False)]
                assert ends[0] == ends[1], "something is undecided for ever"
            self.harness.node.abandon()
            shutil.rmtree(self.folder)

    # --- what clients do ---------------------------------------------------------------------

    @rule(name=ids, is_new=st.booleans())
    def initialise(self, name: str, is_new: bool) -> None:
        """A new instance of a producer; the one before becomes a zombie."""
        before = self.clients.pop(name, None)
        if before is not None:
            self.zombies.append(before)
        producer = self.scripts[name].started(timeout_ms=TIMEOUT_MS)
        self._grow(producer)
        self.clients[name] = Client(self.scripts[name], producer, is_new=is_new)

    @rule(name=ids, index=partitions)
    def write(self, name: str, index: int) -> None:
        client = self.clients.get(name)
        if client is None:
            return
        if not client.is_new and index not in client.added:
            if self._refused(client, client.script.add(client.producer, index)):
                return
            client.added.add(index)
            self._opened(client)
        self.count += 1
        value = b"%s-%d" % (name.encode(), self.count)
        sequence = client.sequences.get(index, 0)
        code = client.script.produce(
            client.producer,
            value,
            partition=index,
            sequence=sequence,
            version=12 if client.is_new else OLD,
        )
        if not self._refused(client, code):
            client.sequences[index] = sequence + 1
            client.records.append((index, value))
            self._opened(client)

    @rule(name=ids)
    def commit_offset(self, name: str) -> None:
        client = self.clients.get(name)
        if client is None:
            return
        if not client.is_new and self._refused(client, client.script.add_offsets(client.producer)):
            return
        self.count += 1
        code = client.script.commit_offsets(
            client.producer, {0: self.count}, version=5 if client.is_new else 4
        )
        if not self._refused(client, code):
            client.offset = self.count
            self._opened(client)

    @rule(name=ids, commit=st.booleans(), times=st.integers(1, 2))
    def end(self, name: str, commit: bool, times: int) -> None:
        """End a transaction; the request may come twice."""
        client = self.clients.get(name)
        if client is None or not client.is_open:
            return
        for attempt in range(times):
            after = client.script.end(
                client.producer, commit=commit, version=5 if client.is_new else 4
            )
            if attempt == 0 and self._refused(client, after.error):
                return
            assert after.error == 0, (attempt, after)
        if client.is_new:
            self._grow(after)
            client.producer = after
            client.sequences.clear()
        if commit:
            for index, value in client.records:
                self.committed[index].add(value)
            if client.offset is not None:
                self.offset = max(self.offset, client.offset)
        client.begin()

    @rule(data=st.data())
    def haunt(self, data: st.DataObject) -> None:
        """A fenced instance goes on."""
        if not self.zombies:
            return
        zombie = data.draw(st.sampled_from(self.zombies))
        version = 12 if zombie.is_new else OLD
        assert zombie.script.produce(zombie.producer, b"zombie", version=version) == 47
        assert zombie.script.end(zombie.producer).error in (90, 49)
        assert zombie.script.commit_offsets(zombie.producer, {0: 1 << 40}) == 47
        assert zombie.script.add(zombie.producer, 0) == 90

    @rule(name=ids, index=partitions)
    def deliver_late(self, name: str, index: int) -> None:
        """A batch of the last transaction arrives after its end (KIP-890)."""
        client = self.clients.get(name)
        if client is None or client.is_open:
            return
        if client.is_new:
            if client.producer.epoch:
                late = client.script.produce(client.producer.older(), b"late", partition=index)
                assert late == 47
        else:
            sequence = client.sequences.get(index, 0)
            late = client.script.produce(
                client.producer, b"late", partition=index, sequence=sequence, version=OLD
            )
            assert self._refused(client, late) or late == 120

    # --- what happens to them ----------------------------------------------------------------

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.harness.restart(clean=clean)

    @rule(milliseconds=st.sampled_from([1_000, TIMEOUT_MS, 2 * TIMEOUT_MS]))
    def pass_time(self, milliseconds: int) -> None:
        self.harness.advance(milliseconds)

    # --- what must hold ----------------------------------------------------------------------

    @invariant()
    def readers_see_what_was_committed(self) -> None:
        if not hasattr(self, "harness"):
            return
        script = self.scripts["a"]
        for index in range(PARTITIONS):
            everything = script.read(index, committed_only=False)
            assert len(set(everything)) == len(everything), "written twice"
            assert b"zombie" not in everything
            assert b"late" not in everything
            stable = script.read(index)
            expected = [one for one in everything if one in self.committed[index]]
            # A reader stops before the first undecided record, and skips nothing before it.
            assert stable == expected[: len(stable)]
            if not any(client.is_open for client in self._all()):
                assert stable == expected
        assert script.committed(0, stable=False) == {0: (self.offset, 0)}

    def _all(self) -> list[Client]:
        return [*self.clients.values(), *self.zombies]

    def _opened(self, client: Client) -> None:
        if client.deadline_ms is None:
            client.deadline_ms = self.harness.clock.now_ms() + TIMEOUT_MS

    def _refused(self, client: Client, code: int) -> bool:
        """Whether the client was fenced, which only its timeout may do."""
        if code == 0:
            return False
        if code in (47, 90):
            assert client.deadline_ms is not None, "fenced without a reason"
            assert self.harness.clock.now_ms() > client.deadline_ms, "fenced too early"
            name = client.script.transactional_id
            if self.clients.get(name) is client:
                del self.clients[name]
                client.begin()
                self.zombies.append(client)
            return True
        assert code == 120, code
        return False

    def _grow(self, producer: Producer) -> None:
        assert producer.epoch > self.epochs.get(producer.id, -1), "an epoch was given twice"
        self.epochs[producer.id] = producer.epoch
