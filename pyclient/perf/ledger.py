"""Decides whether records were lost, doubled, reordered or damaged, by their sequence numbers.

Each partition has its own sequence from 0 on. The ledger keeps only what is open: sequences that
were acknowledged and not read yet, and gaps in what was read. Thread-safe: deliveries are noted on
the producer's I/O thread.
"""

import struct
import threading
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

SHOWN_MAX: Final = 20
_VALUE: Final = struct.Struct(">8sQI")


@dataclass
class _Partition:
    sent: int = 0
    last_read: int = -1
    last_offset: int = -1
    gaps: set[int] = field(default_factory=set)
    unread: dict[int, int] = field(default_factory=dict)
    """Offsets of acknowledged sequences."""


class Ledger:
    """What one run sent, and what was read of it.

    Attributes:
        faults: how many of each kind were found.
        shown: the first faults, in words.
    """

    def __init__(self, run_id: bytes) -> None:
        """`run_id`, of eight bytes, tells this run's records from all others."""
        self._run_id = run_id
        self._lock = threading.Lock()  # guards all below
        self._partitions: dict[int, _Partition] = {}
        self.acked = self.failed = self.read_records = self.foreign = 0
        self.faults: Counter[str] = Counter()
        self.shown: list[str] = []

    @property
    def unread(self) -> int:
        """Acknowledged records that were not read yet."""
        with self._lock:
            return sum(len(one.unread) for one in self._partitions.values())

    def next_value(self, partition: int) -> tuple[int, bytes]:
        """The next sequence of a partition, and the value that carries it."""
        with self._lock:
            one = self._partitions.setdefault(partition, _Partition())
            sequence = one.sent
            one.sent += 1
        return sequence, _VALUE.pack(self._run_id, sequence, self._checksum(partition, sequence))

    def on_acked(self, partition: int, sequence: int, offset: int) -> None:
        """The brokers acknowledged a record, at this offset (-1: unknown)."""
        with self._lock:
            one = self._partitions[partition]
            self.acked += 1
            if sequence > one.last_read or sequence in one.gaps:
                one.unread[sequence] = offset

    def on_failed(self) -> None:
        """A record's outcome is an error: it may have been written or not."""
        with self._lock:
            self.failed += 1

    def on_read(self, partition: int, offset: int, value: bytes | None) -> None:
        """A record was read; other runs' records are counted and otherwise ignored."""
        with self._lock:
            one = self._partitions.setdefault(partition, _Partition())
            place = f"partition {partition}, offset {offset}"
            if offset <= one.last_offset:
                self._fault("read again", f"{place}, after offset {one.last_offset}")
                return
            one.last_offset = offset
            if value is None or not value.startswith(self._run_id):
                self.foreign += 1
                return
            self._on_own(one, partition, place, offset, value)

    def _on_own(
        self, one: _Partition, partition: int, place: str, offset: int, value: bytes
    ) -> None:
        if len(value) != _VALUE.size:
            self._fault("damaged", f"{place}: {len(value)} bytes, not {_VALUE.size}")
            return
        _, sequence, checksum = _VALUE.unpack(value)
        if checksum != self._checksum(partition, sequence):
            self._fault("damaged", f"{place}: sequence {sequence}, and the checksum differs")
            return
        if sequence >= one.sent:
            self._fault("never sent", f"{place}: sequence {sequence} of {one.sent}")
            return
        self.read_records += 1
        acked_at = one.unread.pop(sequence, -1)
        if acked_at not in (-1, offset):
            self._fault("moved", f"{place}: sequence {sequence} was acknowledged at {acked_at}")
        if sequence > one.last_read:
            one.gaps.update(range(one.last_read + 1, sequence))
            one.last_read = sequence
        elif sequence in one.gaps:
            one.gaps.remove(sequence)
            self._fault("out of order", f"{place}: sequence {sequence} after {one.last_read}")
        else:
            self._fault("twice", f"{place}: sequence {sequence} again")

    def finish(self) -> None:
        """All partitions were read to their ends: what is acknowledged and unread is lost."""
        with self._lock:
            for partition, one in sorted(self._partitions.items()):
                for sequence, offset in sorted(one.unread.items()):
                    text = f"partition {partition}: sequence {sequence}, acknowledged at {offset}"
                    self._fault("lost", text)
                one.unread.clear()

    def verdict(self) -> str:
        """One line: the counts, and what was found."""
        found = ", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.items()))
        return (
            f"{self.acked} acknowledged, {self.failed} failed, {self.read_records} read: "
            f"{found or 'nothing lost, nothing twice, order kept'}"
        )

    def _fault(self, kind: str, text: str) -> None:
        self.faults[kind] += 1
        if len(self.shown) < SHOWN_MAX:
            self.shown.append(f"{kind}: {text}")

    def _checksum(self, partition: int, sequence: int) -> int:
        return zlib.crc32(b"%b-%d-%d" % (self._run_id, partition, sequence))
