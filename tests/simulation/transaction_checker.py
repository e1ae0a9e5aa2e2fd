"""Judges transactions by what committed readers saw: Jepsen's anomalies of Kafka.

Every value is unique and belongs to one transaction. Programs report what they do and how it ended;
readers report what they see, while it happens. A transaction is committed, aborted, or, if its
program died in the commit, either of the two, but as a whole.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from enum import Enum

from pyclient.types import TopicPartition

Log = Sequence[tuple[int, bytes]]


class Fate(Enum):
    """How far a transaction has come, as its program knows."""

    OPEN = "open"
    COMMITTING = "committing"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Transaction:
    """One transaction: what it wrote in order, and what it had read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fate = Fate.OPEN
        self.values: list[bytes] = []
        self.reads: list[bytes] = []

    def __repr__(self) -> str:
        return f"{self.name} ({self.fate.value})"


class TransactionChecker:
    """Collects what happens; every rule that is broken is an AssertionError by Jepsen's name."""

    def __init__(self) -> None:
        self._transactions: list[Transaction] = []
        self._by_value: dict[bytes, Transaction] = {}
        self._at: dict[tuple[TopicPartition, int], bytes] = {}
        self._last: dict[tuple[str, TopicPartition], int] = {}
        self._seen: dict[tuple[str, TopicPartition], list[tuple[int, bytes]]] = defaultdict(list)

    def begin(self, name: str) -> Transaction:
        """A program begins a transaction."""
        self._transactions.append(Transaction(name))
        return self._transactions[-1]

    def write(self, transaction: Transaction, value: bytes) -> None:
        """It is about to send a value."""
        assert value not in self._by_value, "values are unique"
        self._by_value[value] = transaction
        transaction.values.append(value)

    def writer_of(self, value: bytes) -> Transaction | None:
        """The transaction that a value belongs to."""
        return self._by_value.get(value)

    def saw(self, reader: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        """A committed reader got a record."""
        where = f"{partition.topic}-{partition.partition} at {offset}"
        known = self._at.setdefault((partition, offset), value)
        assert known == value, f"inconsistent offsets: {known!r} and {value!r} in {where}"
        last = self._last.get((reader, partition), -1)
        assert offset > last, f"nonmonotonic poll: {reader} got {offset} after {last} in {where}"
        self._last[reader, partition] = offset
        self._seen[reader, partition].append((offset, value))
        transaction = self._by_value.get(value)
        assert transaction is not None, f"nobody wrote {value!r}, in {where}"
        assert transaction.fate is not Fate.OPEN, (
            f"pre-committed read: {reader} got {value!r} of {transaction}"
        )
        assert transaction.fate is not Fate.ABORTED, (
            f"aborted read (G1a): {reader} got {value!r} of {transaction}"
        )

    def unfinished(self, seen: Set[bytes]) -> str | None:
        """A transaction that a reader has not seen all of; None if there is none.

        It may still come: its markers may be missing, or an open transaction before it may hold
        the reader up.
        """
        for one in self._transactions:
            missing = [value for value in one.values if value not in seen]
            is_torn = one.fate is Fate.COMMITTING and len(missing) < len(one.values)
            if missing and (one.fate is Fate.COMMITTED or is_torn):
                return f"{missing[:5]} of {one}"
        return None

    def check(self, logs: Mapping[TopicPartition, Log], readers: Sequence[str]) -> None:
        """Judge the end: `logs` is what a committed reader finds in calm, `readers` read to it."""
        found = Counter(value for log in logs.values() for _, value in log)
        for value, count in found.items():
            assert count == 1, f"duplicate: {value!r} of {self._by_value.get(value)} {count} times"
            self.saw_finally(value)
        for transaction in self._transactions:
            self._check_outcome(transaction, found)
        for partition, log in logs.items():
            for offset, value in log:
                known = self._at.setdefault((partition, offset), value)
                assert known == value, f"inconsistent offsets: {known!r} and {value!r}"
            self._check_order(log)
            for reader in readers:
                self._check_reader(reader, partition, log)
        self._check_information_flow()

    def saw_finally(self, value: bytes) -> None:
        """A value is in the log as committed readers see it."""
        transaction = self._by_value.get(value)
        assert transaction is not None, f"nobody wrote {value!r}"
        assert transaction.fate in (Fate.COMMITTED, Fate.COMMITTING), (
            f"aborted read (G1a): {value!r} of {transaction}"
        )

    def _check_outcome(self, transaction: Transaction, found: Counter[bytes]) -> None:
        missing = [value for value in transaction.values if not found[value]]
        if transaction.fate is Fate.COMMITTED:
            assert not missing, f"lost write: {missing} of {transaction}"
        elif transaction.fate is Fate.COMMITTING:
            whole = not missing or len(missing) == len(transaction.values)
            assert whole, f"torn transaction: {missing} of {transaction} are missing"

    def _check_order(self, log: Log) -> None:
        """A transaction's records of a partition are in the order in which they were sent."""
        places = {
            value: place for one in self._transactions for place, value in enumerate(one.values)
        }
        last: dict[Transaction, int] = {}
        for _, value in log:
            transaction = self._by_value[value]
            place = places[value]
            assert place > last.get(transaction, -1), f"nonmonotonic send: {value!r}"
            last[transaction] = place

    def _check_reader(self, reader: str, partition: TopicPartition, log: Log) -> None:
        seen = self._seen[reader, partition]
        assert seen == list(log), (
            f"poll skip or unseen: {reader} got {len(seen)} of {len(log)} records of {partition}:"
            f" {sorted(set(log) ^ set(seen))[:5]}"
        )

    def _check_information_flow(self) -> None:
        """No transaction read what was written because of it (G1c)."""
        reads = {
            one: [self._by_value[value] for value in one.reads if value in self._by_value]
            for one in self._transactions
        }
        done: set[Transaction] = set()
        for start in self._transactions:
            path: list[Transaction] = []
            ahead = [(start, iter(reads[start]))]
            on_path = {start}
            while ahead:
                one, rest = ahead[-1]
                following = next(rest, None)
                if following is None:
                    ahead.pop()
                    on_path.discard(one)
                    done.add(one)
                elif following in on_path:
                    raise AssertionError(f"circular information flow (G1c): {[*path, following]}")
                elif following not in done:
                    ahead.append((following, iter(reads[following])))
                    on_path.add(following)
