"""`.txnindex`: the transactions that were aborted in a segment.

Read-committed consumers get them with each fetch and skip their records. An entry is in the
segment of the abort marker; without aborts there is no file. Stored as `index_file` describes.
Guarded by the lock of its log.
"""

import contextlib
import os
import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from broker_stub.log.index.index_file import IndexFile

_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """An aborted transaction of one producer in one partition."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the marker."""
    last_stable_offset: int
    """The last stable offset after the marker was written."""


class TransactionIndex(IndexFile):
    """The aborted transactions of a segment, by the offsets of their markers."""

    __slots__ = ()

    ENTRY = struct.Struct(">hqqqq")

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return map(self._transaction, range(self._size))

    def append(self, transaction: AbortedTransaction) -> None:
        """Add a transaction whose marker was just written."""
        self._append(_VERSION, *transaction)

    def spill(self) -> None:
        """Append the entries in memory to the file; without entries, create no file."""
        if self._tail:
            super().spill()

    def clear(self) -> None:
        """Drop all entries and remove the file."""
        self._stored = self._size = 0
        self._tail.clear()
        self._files.forget(self.path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def search(self, from_offset: int, to_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Transactions that may have records in a range of offsets, and whether these are all.

        Later segments may have more until an entry's last stable offset reaches `to_offset`.
        """
        found = []
        for slot in range(self._first_ending_at(from_offset), self._size):
            transaction = self._transaction(slot)
            if transaction.first_offset < to_offset:
                found.append(transaction)
            if transaction.last_stable_offset >= to_offset:
                return found, True
        return found, False

    def is_sound(self, base_offset: int) -> bool:
        """Whether the entries can be those of a segment that starts at `base_offset`."""
        last_offset = base_offset - 1
        for slot in range(self._size):
            transaction = self._transaction(slot)
            if (
                self._fields(slot)[0] != _VERSION
                or transaction.last_offset <= last_offset
                or transaction.first_offset > transaction.last_offset
            ):
                return False
            last_offset = transaction.last_offset
        return True

    def _first_ending_at(self, offset: int) -> int:
        return bisect_left(
            range(self._size), offset, key=lambda slot: self._transaction(slot).last_offset
        )

    def _transaction(self, slot: int) -> AbortedTransaction:
        _, *fields = self._fields(slot)
        return AbortedTransaction(*fields)
