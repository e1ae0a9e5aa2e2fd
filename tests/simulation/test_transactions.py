"""Transactions in simulated worlds: exactly once, and none of Jepsen's anomalies of Kafka."""

from collections.abc import Callable
from typing import Any

import pytest

from broker_stub.coordinator.transactions.transaction import Transaction
from broker_stub.coordinator.transactions.transaction_state import NO_EPOCH
from broker_stub.log.producers import sequence_check
from broker_stub.testing.simulation import explore
from pyclient.errors import InvalidProducerEpochError, ProducerFencedError
from pyclient.producer.transactions.manager import TransactionManager
from pyclient.types import TopicPartition
from tests.simulation.explorer import explore_slice
from tests.simulation.transaction_checker import Fate, TransactionChecker
from tests.simulation.transactions_history import Copier, transactions_history

pytestmark = pytest.mark.simulation

HERE = TopicPartition("out", 0)
THERE = TopicPartition("out", 1)


@pytest.mark.timeout(300)
def test_transactions_are_whole_and_exactly_once() -> None:
    explore_slice("transactions")


class TestTheChecker:
    """Each anomaly, in the smallest history that has it."""

    def world(self, fate: Fate, values: int = 2) -> TransactionChecker:
        checker = TransactionChecker()
        transaction = checker.begin("t")
        for number in range(values):
            checker.write(transaction, b"%d" % number)
        transaction.fate = fate
        return checker

    def test_a_history_without_anomalies_passes(self) -> None:
        for fate in (Fate.COMMITTED, Fate.COMMITTING):
            checker = self.world(fate)
            checker.saw("r", HERE, 0, b"0")
            checker.check({HERE: [(0, b"0")], THERE: [(5, b"1")]}, [])
        self.world(Fate.COMMITTING).check({HERE: []}, [])
        self.world(Fate.ABORTED).check({HERE: []}, [])

    @pytest.mark.parametrize(
        ("fate", "log", "anomaly"),
        [
            (Fate.COMMITTED, [(0, b"0")], "lost write"),
            (Fate.COMMITTED, [(0, b"0"), (1, b"0"), (2, b"1")], "duplicate"),
            (Fate.COMMITTED, [(0, b"1"), (1, b"0")], "nonmonotonic send"),
            (Fate.COMMITTING, [(0, b"0")], "torn transaction"),
            (Fate.ABORTED, [(0, b"0")], r"aborted read \(G1a\)"),
            (Fate.OPEN, [(0, b"0")], r"aborted read \(G1a\)"),
        ],
    )
    def test_it_judges_the_log(
        self, fate: Fate, log: list[tuple[int, bytes]], anomaly: str
    ) -> None:
        with pytest.raises(AssertionError, match=anomaly):
            self.world(fate).check({HERE: log}, [])

    @pytest.mark.parametrize(
        ("fate", "seen", "anomaly"),
        [
            (Fate.OPEN, [(0, b"0")], "pre-committed read"),
            (Fate.ABORTED, [(0, b"0")], r"aborted read \(G1a\)"),
            (Fate.COMMITTED, [(0, b"0"), (0, b"1")], "inconsistent offsets"),
            (Fate.COMMITTED, [(1, b"1"), (0, b"0")], "nonmonotonic poll"),
        ],
    )
    def test_it_judges_what_readers_see(
        self, fate: Fate, seen: list[tuple[int, bytes]], anomaly: str
    ) -> None:
        checker = self.world(fate)

        def read() -> None:
            for offset, value in seen:
                checker.saw("r", HERE, offset, value)

        with pytest.raises(AssertionError, match=anomaly):
            read()

    def test_it_finds_what_a_reader_skipped(self) -> None:
        checker = self.world(Fate.COMMITTED)
        checker.saw("r", HERE, 1, b"1")
        with pytest.raises(AssertionError, match="poll skip or unseen"):
            checker.check({HERE: [(0, b"0"), (1, b"1")]}, ["r"])

    @pytest.mark.parametrize(
        ("fate", "seen", "is_finished"),
        [
            (Fate.COMMITTED, {b"0", b"1"}, True),
            (Fate.COMMITTED, {b"0"}, False),
            (Fate.COMMITTING, {b"0"}, False),
            (Fate.COMMITTING, set(), True),
            (Fate.ABORTED, set(), True),
        ],
    )
    def test_it_tells_whether_a_reader_has_to_wait(
        self, fate: Fate, seen: set[bytes], is_finished: bool
    ) -> None:
        assert (self.world(fate).unfinished(seen) is None) == is_finished

    def test_it_finds_circular_information_flow(self) -> None:
        checker = TransactionChecker()
        for name, other in ((b"a", b"b"), (b"b", b"a")):
            transaction = checker.begin(name.decode())
            checker.write(transaction, name)
            transaction.reads.append(other)
            transaction.fate = Fate.COMMITTED
        with pytest.raises(AssertionError, match=r"circular information flow \(G1c\)"):
            checker.check({HERE: [(0, b"a"), (1, b"b")]}, [])


def end_before_all_is_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransactionManager, "_is_flushed", lambda _: True)


def bump_no_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def bumped(self: Transaction, _expected: Any) -> tuple[int, int]:
        return max(self.image.producer_epoch, 0), NO_EPOCH

    fence = Transaction.fence

    def fenced(self: Transaction, *arguments: Any) -> Any:
        return fence(self, *arguments)._replace(producer_epoch=self.image.producer_epoch)

    monkeypatch.setattr(Transaction, "_bumped", bumped)
    monkeypatch.setattr(Transaction, "fence", fenced)


def commit_offsets_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    def send_offsets(_self: Copier, consumer: Any, _producer: Any, offsets: Any) -> None:
        consumer.commit(offsets)

    monkeypatch.setattr(Copier, "_send_offsets", send_offsets)


def accept_late_produces(monkeypatch: pytest.MonkeyPatch) -> None:
    add_partitions = Transaction.add_partitions

    def add(self: Transaction, *arguments: Any) -> Any:
        try:
            return add_partitions(self, *arguments)
        except (ProducerFencedError, InvalidProducerEpochError):
            return None

    monkeypatch.setattr(Transaction, "add_partitions", add)
    monkeypatch.setattr(Transaction, "verify_partitions", lambda *_: {})
    monkeypatch.setattr(sequence_check, "_check_transaction", lambda *_, **__: None)
    monkeypatch.setattr(sequence_check, "check_sequence", lambda *_, **__: None)


# From the seed on that finds it, all below 10: the histories before it only take time.
FAULTS = [
    (end_before_all_is_flushed, 1),
    (bump_no_epoch, 1),
    (commit_offsets_outside, 2),
    (accept_late_produces, 6),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("plant", "first_seed"), FAULTS)
def test_the_check_finds_a_planted_fault(
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
    first_seed: int,
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        explore(transactions_history, range(first_seed, 500))
