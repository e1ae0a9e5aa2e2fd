"""What `send_many` and `send_arrow` return: the futures of many records, made when asked for.

Rows of a call lie in runs: neighbours in one batch. A run is all that is kept of its records, so
that a million rows cost as little as their batches. Any thread may use it.
"""

import itertools
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple, overload

from pyclient.errors import KafkaError, KafkaTimeoutError
from pyclient.producer.batch_result import BatchResult
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.timers import Deadline


class Run(NamedTuple):
    """Records that follow each other in one batch."""

    result: BatchResult
    first: int  # its index in the batch
    length: int


class Rows(NamedTuple):
    """The rows of a call as they were sent.

    `order` has the numbers of the rows as they were sent; None if that was their own order.
    `sizes` tells a row's timestamp, and the bytes of its key, value and headers, -1 without.
    """

    length: int
    order: Sequence[int] | None
    sizes: Callable[[int], tuple[int, int, int, int]]


class SentRecords(Sequence[FutureRecordMetadata]):
    """The futures of records that were sent together, in the order of their rows."""

    __slots__ = ("_places", "_rows", "_runs", "_starts")

    def __init__(self, rows: Rows, runs: Sequence[Run]) -> None:
        self._rows = rows
        self._runs = runs
        # Made when the first record is asked for.
        self._starts: list[int] = []
        self._places: Sequence[int] = ()

    def get(self, timeout: float | None = None) -> int:
        """Wait until all records are written; returns their number.

        Raises:
            KafkaTimeoutError: some had no outcome after `timeout` seconds; they may still arrive.
            KafkaError: the first one, by row, of the records that failed.
            IllegalStateError: called in a callback.
        """
        self._wait(timeout)
        if not self._all_written:
            row, error = next(iter(self._failures().items()))
            error.add_note(f"record {row} of {len(self)}")
            raise error
        return len(self)

    def failures(self, timeout: float | None = None) -> dict[int, KafkaError]:
        """Wait until all records have their outcome; the errors of those that failed, by row.

        Raises:
            KafkaTimeoutError: some had no outcome after `timeout` seconds; they may still arrive.
            IllegalStateError: called in a callback.
        """
        self._wait(timeout)
        return {} if self._all_written else self._failures()

    @property
    def is_done(self) -> bool:
        """Whether the outcome of all records is known."""
        return all(run.result.is_over for run in self._runs)

    @property
    def _all_written(self) -> bool:
        return all(run.result.is_written for run in self._runs)

    def _failures(self) -> dict[int, KafkaError]:
        order = self._rows.order
        failed = {}
        place = 0
        for run in self._runs:
            if not run.result.is_written:
                for index in range(run.length):
                    error = FutureRecordMetadata(run.result, run.first + index, -1).exception
                    if error is not None:
                        row = place + index
                        failed[row if order is None else order[row]] = error
            place += run.length
        return dict(sorted(failed.items()))

    def _wait(self, timeout: float | None) -> None:
        if not self._runs:
            return
        engine = self._runs[0].result.engine
        deadline = Deadline(engine.clock, None if timeout is None else timeout * 1000)
        for run in self._runs:
            if run.result.is_finished:
                continue
            engine.check_may_wait("get()")
            engine.check_usable("get()")
            if not run.result.wait_finished(deadline):
                raise KafkaTimeoutError(
                    f"no acknowledgement of records for {run.result.topic_partition.topic}-"
                    f"{run.result.topic_partition.partition} within {timeout} s; they are still"
                    " on their way"
                )

    def __len__(self) -> int:
        return self._rows.length

    @overload
    def __getitem__(self, row: int) -> FutureRecordMetadata: ...
    @overload
    def __getitem__(self, row: slice) -> list[FutureRecordMetadata]: ...
    def __getitem__(self, row: int | slice) -> FutureRecordMetadata | list[FutureRecordMetadata]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(f"record {row} of {len(self)} records")
        row %= len(self)
        rows = self._rows
        if not self._starts:
            self._locate()
        place = self._places[row]
        number = bisect_right(self._starts, place) - 1
        run = self._runs[number]
        index = run.first + place - self._starts[number]
        return FutureRecordMetadata(run.result, index, *rows.sizes(row))

    def _locate(self) -> None:
        """Compute where each run begins, and the position of each row among those sent."""
        order = self._rows.order
        self._places = range(len(self))
        if order is not None:
            places = array("q", bytes(8 * len(order)))
            for place, row in enumerate(order):
                places[row] = place
            self._places = places
        lengths = [run.length for run in self._runs]
        self._starts = list(itertools.accumulate(lengths[:-1], initial=0))

    def __repr__(self) -> str:
        return f"<SentRecords: {len(self)} in {len(self._runs)} runs>"
