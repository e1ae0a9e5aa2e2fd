"""Compaction of any history, interrupted anywhere: a reader always ends up with the same table."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_stub.log.files.open_files import OpenFiles
from broker_stub.log.partition_log import PartitionLog
from broker_stub.testing.simulation.chance import chance
from broker_stub.testing.simulation.clock import SimulatedClock
from broker_stub.testing.simulation.disk import SimulatedDisk
from broker_stub.testing.simulation.trace import Trace
from pyclient.records.batch import iter_batches
from pyclient.records.builder import BatchBuilder
from tests.support.compaction import DAY_MS, compact, contents, records, table, write
from tests.support.logs import NOW_MS, config, marker, open_log

KEYS = [b"a", b"b", b"c", b"d"]
VALUES = {"segment_bytes": 350, "index_interval_bytes": 60, "cleanup_policy": ["compact"]}


class Step(NamedTuple):
    """One thing that happens: a batch of keys (None: tombstones), a marker, or a compaction."""

    kind: str  # plain, producer, transaction, commit, abort, compact, restart
    producer_id: int
    records: list[tuple[bytes, bool]]  # key, whether it is a tombstone
    later_ms: int


steps = st.builds(
    Step,
    st.sampled_from(
        [
            *("plain", "plain", "producer", "transaction", "transaction", "commit", "abort"),
            *("compact", "compact", "restart"),
        ]
    ),
    st.integers(1, 2),
    st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), min_size=1, max_size=3),
    st.sampled_from([0, 1, DAY_MS // 2, DAY_MS]),
)
histories = st.lists(steps, min_size=3, max_size=40)


class UnsyncedFiles(OpenFiles):
    """Files of a process that may be killed: the system has what it wrote, synced or not."""

    def sync(self, path: str) -> None:
        os.stat(path)


class World:
    """A log, what was written to it, and the time."""

    def __init__(self, folder: Path, files: OpenFiles | None = None) -> None:
        self.folder = folder
        self.files = UnsyncedFiles() if files is None else files
        self.now_ms = NOW_MS
        self.log = self._open()
        self.cleaned_to = 0
        self._written = 0
        self._sequences = {1: 0, 2: 0}

    def _open(self, *, clean: bool = False, recovery_point: int = 0) -> PartitionLog:
        log = open_log(
            self.folder, clean=clean, files=self.files, recovery_point=recovery_point, **VALUES
        )
        log.advance_high_watermark(log.log_end_offset)
        return log

    def take(self, step: Step) -> None:
        self.now_ms += step.later_ms
        if step.kind == "compact":
            self.compact()
        elif step.kind == "restart":
            self.restart()
        elif step.kind in ("commit", "abort"):
            end = marker(committed=step.kind == "commit", producer_id=step.producer_id)
            write(self.log, end, self.now_ms)
        elif (
            step.kind != "transaction"
            and step.producer_id in self.log.producer_state.open_transactions
        ):
            return  # a producer is in its transaction or it is not
        else:
            write(self.log, self._batch(step), self.now_ms)

    def _batch(self, step: Step) -> bytearray:
        header: dict[str, object] = {}
        if step.kind != "plain":
            header = {
                "producer_id": step.producer_id,
                "producer_epoch": 0,
                "base_sequence": self._sequences[step.producer_id],
                "transactional": step.kind == "transaction",
            }
            self._sequences[step.producer_id] += len(step.records)
        builder = BatchBuilder(bytearray(400), codec=len(step.records) % 2, **header)
        for key, is_tombstone in step.records:
            self._written += 1
            value = None if is_tombstone else b"value %d" % self._written
            assert builder.try_append(self.now_ms, key, value) >= 0
        return bytearray(b"".join(builder.close()))

    def compact(self) -> None:
        if len(self.log.segments) > 1:
            self.cleaned_to = compact(
                self.log, self.files, first_dirty=self.cleaned_to, now_ms=self.now_ms
            )

    def restart(self, folder: Path | None = None, *, clean: bool = True) -> None:
        self.log.close() if clean else self.log.abandon()
        if folder is not None:
            self.folder = folder
        self.files.clear()
        # All was synced before it was compacted: recovery trusts what it finds there.
        self.log = self._open(clean=clean, recovery_point=self.log.log_end_offset)
        self.cleaned_to = min(self.cleaned_to, self.log.log_end_offset)


class Facts(NamedTuple):
    """What compaction must not change."""

    table: dict[bytes, bytes]
    log_end_offset: int
    last_stable_offset: int
    sequences: dict[int, int]
    open_transactions: dict[int, int]


def facts(log: PartitionLog) -> Facts:
    return Facts(
        table(log),
        log.log_end_offset,
        log.last_stable_offset,
        {entry.producer_id: entry.last_sequence for entry in log.producer_state},
        dict(log.producer_state.open_transactions),
    )


def check(log: PartitionLog, before: Facts, original: dict[int, object]) -> None:
    assert facts(log) == before
    offsets = [record.offset for record in records(log)]
    assert offsets == sorted(set(offsets))
    assert contents(log).items() <= original.items()  # where they were, as they were
    check_that_readers_reach_the_end(log)


def check_that_readers_reach_the_end(log: PartitionLog) -> None:
    for start in range(log.log_start_offset, log.log_end_offset):
        read = log.read(start, 1)
        assert read.records is not None
        (first, *_) = iter_batches(read.records.read())
        assert first.last_offset >= start


@settings(max_examples=250, deadline=None)
@given(history=histories)
def test_a_reader_who_keeps_the_last_value_of_each_key_notices_nothing(scratch, history):
    shutil.rmtree(scratch / "history", ignore_errors=True)
    world = World(scratch / "history" / "orders-0")
    original: dict[int, object] = {}
    for step in history:
        if step.kind != "compact":
            world.take(step)
            original |= contents(world.log)
            continue
        before = facts(world.log)
        world.take(step)
        check(world.log, before, original)
        cleaned = [
            key for offset, (key, _) in contents(world.log).items() if offset < world.cleaned_to
        ]
        assert len(set(cleaned)) == len(cleaned)  # it does what it is for
    world.log.abandon()


class Crash(BaseException):
    """The process is killed."""


@contextmanager
def killed_at(operation: int, files: OpenFiles, monkeypatch) -> Iterator[list[int]]:
    """Die at the nth time that a file is renamed, synced or written."""
    count = [0]

    def dying(call):
        def act(*arguments, **options):
            count[0] += 1
            if count[0] == operation:
                raise Crash
            return call(*arguments, **options)

        return act

    with monkeypatch.context() as patched:
        for name in ("rename", "pwrite", "unlink"):
            patched.setattr(os, name, dying(getattr(os, name)))
        patched.setattr(files, "sync", dying(files.sync))
        yield count


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """A folder in memory, where there is one: these tests make thousands of files."""
    in_memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with TemporaryDirectory(prefix="compaction-", dir=in_memory) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def template(scratch: Path) -> World:
    """A log with all there is: superseded values, tombstones, transactions, several groups."""
    world = World(scratch / "template" / "orders-0")
    for number in range(16):
        kind = ("plain", "producer", "transaction")[number % 3]
        world.take(Step(kind, 1 + number % 2, [(KEYS[number % 4], number % 7 == 0)], 1))
        if number % 4 == 3:
            end = "commit" if number % 8 == 3 else "abort"
            for producer_id in (1, 2):
                world.take(Step(end, producer_id, [], 0))
    world.compact()
    world.take(Step("plain", 1, [(b"a", True), (b"b", False)], DAY_MS))
    for number in range(6):
        world.take(Step("plain", 1, [(KEYS[number % 4], False)], 1))
    world.restart()
    world.log.close()
    return world


def copied(template: World, folder: Path, files: OpenFiles | None = None) -> World:
    """The template's log in another folder, about to be compacted."""
    shutil.copytree(template.folder, folder)
    world = World(folder, files)
    world.now_ms, world.cleaned_to = template.now_ms, template.cleaned_to
    # So that several segments become one.
    world.log.update_config(config(**{**VALUES, "segment_bytes": 900}))
    return world


def test_a_kill_at_any_operation_leaves_a_log_that_reads_the_same(scratch, template, monkeypatch):
    operation, through = 0, False
    while not through:
        operation += 1
        folder = scratch / str(operation)
        world = copied(template, folder)
        before, original = facts(world.log), contents(world.log)
        with killed_at(operation, world.files, monkeypatch) as count:
            try:
                world.compact()
            except Crash:
                pass
            else:
                through = True
        assert through == (count[0] < operation)
        world.restart(clean=False)
        check(world.log, before, original)
        world.compact()  # and it can be compacted again
        check(world.log, before, original)
        world.log.abandon()
        shutil.rmtree(folder)
    assert operation > 50


class PowerLoss(BaseException):
    """The power goes."""


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 1 << 30), syncs=st.integers(1, 17))
def test_a_power_loss_at_any_moment_leaves_a_log_that_reads_the_same(template, seed, syncs):
    disk = SimulatedDisk(chance(seed, "disk"), Trace(SimulatedClock()))
    folder = Path(disk.path) / "orders-0"
    files = disk.files()
    world = copied(template, folder, files)
    for path in (folder.parent, folder, *folder.iterdir()):
        disk.synced(str(path))  # only the compaction is in danger
    before, original = facts(world.log), contents(world.log)
    sync, left = files.sync, [syncs]

    def dying(path: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise PowerLoss
        sync(path)

    files.sync = dying  # type: ignore[method-assign]
    with suppress(PowerLoss):
        world.compact()
    files.sync = sync  # type: ignore[method-assign]
    world.log.abandon()
    disk.lose_power()
    world.restart(Path(disk.path) / "orders-0", clean=False)
    check(world.log, before, original)
    disk.remove()
