"""Checks that records were delivered as Kafka guarantees, by the rules of Jepsen's Kafka tests.

Give it what was sent and with which outcome, what a power loss took, what readers polled, and the
final contents of the logs. Every value must be unique. It does not depend on a client or broker.
Not thread-safe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from pyclient.types import TopicPartition

_SHOWN_MAX: Final = 20
_VALUE_SHOWN: Final = 40


class Outcome(Enum):
    """The outcome of a send, as the sender knows it."""

    UNKNOWN = "unknown"
    """It may have been written or not, such as after a timeout."""
    ACKED = "acked"
    """It was written."""
    FAILED = "failed"
    """It was not and will not be written, or its transaction was aborted."""


class Anomaly(NamedTuple):
    """A violated guarantee."""

    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


class Sent:
    """A record that was sent. Its outcome is unknown until one of the methods sets it."""

    __slots__ = ("offset", "outcome", "partition", "sender", "value")

    def __init__(self, sender: str, value: bytes) -> None:
        self.sender = sender
        self.value = value
        self.outcome = Outcome.UNKNOWN
        self.partition: TopicPartition | None = None
        self.offset = -1

    def acked(self, partition: TopicPartition, offset: int) -> None:
        """The record was written; `offset` is -1 if it is not known."""
        self.outcome = Outcome.ACKED
        self.partition = partition
        self.offset = offset

    def failed(self) -> None:
        """The record was definitely not written."""
        self.outcome = Outcome.FAILED

    def __repr__(self) -> str:
        where = "" if self.partition is None else f" at {_place(self.partition, self.offset)}"
        return f"{_short(self.value)} of {self.sender}, {self.outcome.value}{where}"


class DeliveryChecker:
    """Collects the history of a test's records, and checks it."""

    def __init__(self, *, once: bool = True, in_order: bool = True) -> None:
        """Start with an empty history.

        Args:
            once: a duplicate in the log is an anomaly, as with idempotence.
            in_order: reordered records of one sender are an anomaly.
        """
        self._once = once
        self._in_order = in_order
        self._sent: dict[bytes, Sent] = {}
        self._logs: dict[TopicPartition, dict[int, bytes]] = {}
        self._lost: defaultdict[TopicPartition, list[tuple[int, bytes]]] = defaultdict(list)
        self._polled: defaultdict[tuple[str, TopicPartition], list[int]] = defaultdict(list)
        self._found: list[Anomaly] = []

    # --- what happened -----------------------------------------------------------------------

    def sent(self, sender: str, value: bytes) -> Sent:
        """A sender sends a record, after its earlier ones."""
        if value in self._sent:
            raise ValueError(f"values must be unique: {value!r}")
        one = self._sent[value] = Sent(sender, value)
        return one

    def power_lost(
        self,
        partition: TopicPartition,
        before: Iterable[tuple[int, bytes]],
        after: Iterable[tuple[int, bytes]],
    ) -> None:
        """A power loss may have truncated a log: its offsets and values before and after.

        Losing the end is no anomaly, unless syncing was guaranteed. Losing anything else is.
        """
        left = dict(after)
        gone = [(offset, value) for offset, value in before if left.get(offset) != value]
        self._lost[partition] += gone
        for offset, value in gone:
            if offset < max(left, default=-1):
                self._find(
                    "torn log", f"{_short(value)} at {_place(partition, offset)}, amid others"
                )

    def polled(
        self, reader: str, partition: TopicPartition, records: Iterable[tuple[int, bytes]]
    ) -> None:
        """A reader polled records. Use another reader name after each assignment or seek."""
        offsets = self._polled[reader, partition]
        log = self._logs.setdefault(partition, {})
        for offset, value in records:
            if offsets and offset <= offsets[-1]:
                text = f"{reader} got {_place(partition, offset)} after {offsets[-1]}"
                self._find("non-monotonic poll", text)
            offsets.append(offset)
            self._note(partition, log, offset, value)

    def log(self, partition: TopicPartition, records: Iterable[tuple[int, bytes]]) -> None:
        """The final contents of a log, as readers see them."""
        log = self._logs.setdefault(partition, {})
        for offset, value in records:
            self._note(partition, log, offset, value)

    def _note(
        self, partition: TopicPartition, log: dict[int, bytes], offset: int, value: bytes
    ) -> None:
        other = log.setdefault(offset, value)
        if other != value:
            text = f"{_short(value)} and {_short(other)}, both at {_place(partition, offset)}"
            self._find("inconsistent offsets", text)

    # --- what to make of it ------------------------------------------------------------------

    def check(self) -> None:
        """Raise if a guarantee was violated.

        Raises:
            AssertionError: lists the anomalies.
        """
        found = self.anomalies()
        if found:
            shown = "\n".join(map(str, found[:_SHOWN_MAX]))
            raise AssertionError(f"{len(found)} anomalies:\n{shown}")

    def anomalies(self) -> list[Anomaly]:
        """All anomalies found."""
        places: defaultdict[bytes, list[tuple[TopicPartition, int]]] = defaultdict(list)
        for partition, log in self._logs.items():
            for offset in sorted(log):
                places[log[offset]].append((partition, offset))
        return [
            *self._found,
            *(self._strange(places)),
            *(self._duplicates(places) if self._once else ()),
            *self._missing(places),
            *(self._disordered(places) if self._in_order else ()),
            *self._skipped(),
        ]

    def _find(self, rule: str, what: str) -> None:
        self._found.append(Anomaly(rule, what))

    def _strange(self, places: _Places) -> Iterator[Anomaly]:
        for value, found in places.items():
            sent = self._sent.get(value)
            where = _place(*found[0])
            if sent is None:
                yield Anomaly("phantom", f"{_short(value)} at {where}, which nobody sent")
            elif sent.outcome is Outcome.FAILED:
                yield Anomaly("aborted read", f"{sent}, but it is at {where}")

    def _duplicates(self, places: _Places) -> Iterator[Anomaly]:
        for value, found in places.items():
            if len(found) > 1:
                where = ", ".join(_place(*one) for one in found)
                yield Anomaly("duplicate", f"{_short(value)} at {where}")

    def _missing(self, places: _Places) -> Iterator[Anomaly]:
        lost = {
            (partition, value, offset)
            for partition, records in self._lost.items()
            for offset, value in records
        }
        ends = {partition: max(log, default=-1) for partition, log in self._logs.items()}
        for sent in self._sent.values():
            partition = sent.partition
            if sent.outcome is not Outcome.ACKED or partition is None:
                continue
            if (partition, sent.value, sent.offset) in lost:
                continue
            if (partition, sent.offset) in places.get(sent.value, ()):
                continue
            if sent.offset < 0 and sent.value in places:
                continue
            seen = sent.offset <= ends.get(partition, -1)
            yield Anomaly("lost write" if seen else "unseen", str(sent))

    def _disordered(self, places: _Places) -> Iterator[Anomaly]:
        last: dict[tuple[str, TopicPartition], tuple[int, Sent]] = {}
        for sent in self._sent.values():
            for partition, offset in places.get(sent.value, ()):
                before = last.get((sent.sender, partition))
                if before is not None and offset < before[0]:
                    text = f"{sent} is at {offset}, before {before[1]}"
                    yield Anomaly("non-monotonic send", text)
                last[sent.sender, partition] = (offset, sent)

    def _skipped(self) -> Iterator[Anomaly]:
        for (reader, partition), offsets in self._polled.items():
            written = sorted(self._logs[partition])
            between = [one for one in written if offsets[0] <= one <= offsets[-1]]
            for offset in sorted(set(between) - set(offsets)):
                yield Anomaly("poll skip", f"{reader} never got {_place(partition, offset)}")


_Places = dict[bytes, list[tuple[TopicPartition, int]]]


def _short(value: bytes) -> str:
    return repr(value if len(value) <= _VALUE_SHOWN else value[:_VALUE_SHOWN] + b"...")


def _place(partition: TopicPartition, offset: int) -> str:
    return f"{partition.topic}-{partition.partition}@{offset}"
