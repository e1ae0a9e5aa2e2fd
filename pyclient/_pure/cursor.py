"""Iteration, one record at a time. The pure-Python twin of `_native/cursor.pxi`."""

from collections.abc import Callable, Iterator
from operator import length_hint

from pyclient._pure.record import ConsumerRecord


class RecordCursor(Iterator[ConsumerRecord]):
    """Hands out records one by one; calls `refill` when there are none, or when interrupted.

    `refill` returns once there are records (`open`), or raises StopIteration. An exception does
    not end the iteration: the next call retries.
    """

    __slots__ = ("_count", "_is_open", "_records", "_refill", "interrupted")

    def __init__(self, refill: Callable[[], None]) -> None:
        self.interrupted = False
        self._refill = refill
        self._is_open = False
        self._records: Iterator[ConsumerRecord] = iter(())
        self._count = 0

    @property
    def index(self) -> int:
        """How many records of the loaded list were handed out."""
        return self._count - length_hint(self._records)

    def load(self, records: list[ConsumerRecord]) -> None:
        """Hand these out after the next `open`."""
        self._is_open = False
        # A list iterator advances and returns in one step: signal handlers cannot run between.
        self._records, self._count = iter(records), len(records)

    def open(self) -> None:
        """Hand out records without calling `refill` first."""
        self._is_open = True

    def close(self) -> None:
        """Call `refill` before the next record."""
        self._is_open = False

    def __next__(self) -> ConsumerRecord:
        while self.interrupted or not self._is_open or not length_hint(self._records):
            self._refill()
        return next(self._records)
