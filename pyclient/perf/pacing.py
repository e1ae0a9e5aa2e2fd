"""Arrival times of records, decided before the run: what a slow broker delays is still due.

A schedule yields due times in milliseconds after the start. `Pacer` waits for each and returns
it, so that a latency is counted from when the record was due rather than from when the sender got
round to it. Otherwise a stalled broker also stalls the measuring (coordinated omission).
"""

import math
from collections.abc import Callable, Iterator
from typing import Protocol

from pyclient.clock import Clock, SystemClock
from pyclient.entropy import Entropy
from pyclient.net.waiting import ThreadWaiting, Waiting


class Schedule(Protocol):
    """Due times in milliseconds after the start, never descending."""

    def __iter__(self) -> Iterator[float]: ...


class FixedRate:
    """One record every 1000 / `rate` milliseconds, the first at `first_ms`."""

    def __init__(self, rate: float, first_ms: float = 0) -> None:
        self.rate = _checked(rate)
        self._first_ms = first_ms

    def __iter__(self) -> Iterator[float]:
        number = 0
        while True:
            yield (
                self._first_ms + number * 1000 / self.rate
            )  # multiplied, so that rounding does not add up
            number += 1


class Poisson:
    """Independent arrivals, `rate` a second on average: bursts and gaps, as many users make."""

    def __init__(self, rate: float, seed: int | None = None) -> None:
        self.rate = _checked(rate)
        self._seed = seed

    def __iter__(self) -> Iterator[float]:
        entropy = Entropy(self._seed)
        due_ms = 0.0
        while True:
            # 1 - u is never 0, and an exponential gap makes a Poisson process.
            due_ms -= math.log(1 - entropy.uniform(0, 0.9999999999)) * 1000 / self.rate
            yield due_ms


def _checked(rate: float) -> float:
    if not (rate > 0 and math.isfinite(rate)):
        raise ValueError(f"a rate is a positive number of records a second, not {rate}")
    return rate


class Pacer:
    """Releases records when they are due. For one thread.

    A record is never released early. A sender that falls behind gets the missed ones at once,
    each with its own due time.
    """

    def __init__(
        self,
        schedule: Schedule | None = None,
        *,
        clock: Clock | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        """Begin now; without a schedule every record is due when it is asked for."""
        self._clock = clock or SystemClock()
        self._waiting = waiting or ThreadWaiting()
        self._due = None if schedule is None else iter(schedule)
        self.start_ms = self._clock.monotonic_ms()

    def next_due_ms(self) -> float:
        """The next record's due time on the monotonic clock, for callers that wait themselves."""
        if self._due is None:
            return self._clock.monotonic_ms()
        return self.start_ms + next(self._due)

    def left_ms(self, due_ms: float) -> float:
        """Time until `due_ms`; negative when it is past."""
        return due_ms - self._clock.monotonic_ms()

    def wait(self, wait: Callable[[float], object] | None = None) -> float:
        """Wait for the next record's turn; returns its due time on the monotonic clock.

        `wait` waits at most so many milliseconds, for clients that have work to do meanwhile.
        """
        if self._due is None:
            return self._clock.monotonic_ms()
        due_ms = self.start_ms + next(self._due)
        while (left_ms := due_ms - self._clock.monotonic_ms()) > 0:
            if wait is None:
                self._waiting.waiter().wait(left_ms)
            else:
                wait(left_ms)
        return due_ms
