"""Time, injected: the one module that reads the machine's clocks.

Two readings, never mixed: `now_ms` is the wall clock, for timestamps of records, and may jump;
`monotonic_ms` is for deadlines and waits, and never goes back. Any thread may read a clock.
"""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol


class Clock(Protocol):
    """What everything that needs the time is given."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""

    def monotonic_ms(self) -> float:
        """Milliseconds since some fixed point in the past."""


class SystemClock:
    """Reads the machine's clocks."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Milliseconds since some fixed point in the past."""
        return time.monotonic() * 1000


class ManualClock:
    """A clock that stands still until it is told to move: for tests.

    It starts at the machine's time, so that the records of ordinary clients are of its present.
    Where every run is to be the same, give it a start.
    """

    def __init__(self, now_ms: int | None = None) -> None:
        self._start_ms = SystemClock().now_ms() if now_ms is None else now_ms
        self._elapsed_ms = 0.0
        self._listeners: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        """The start, and what `advance` added since."""
        return self._start_ms + int(self._elapsed_ms)

    def monotonic_ms(self) -> float:
        """What `advance` added since the start."""
        return self._elapsed_ms

    def advance(self, milliseconds: float) -> None:
        """Move both readings forward.

        Raises:
            ValueError: it is less than nothing, infinite or not a number at all (NaN).
        """
        try:
            is_finite = math.isfinite(milliseconds)
        except TypeError:
            raise TypeError(
                f"a clock moves by a number of milliseconds, not by {milliseconds!r}"
            ) from None
        if not is_finite:
            raise ValueError(f"a clock can't move by {milliseconds} ms")
        if milliseconds < 0:
            raise ValueError(f"time does not go back: {milliseconds} ms")
        self._elapsed_ms += milliseconds
        for listener in tuple(self._listeners):
            listener()

    def on_advance(self, listener: Callable[[], None]) -> None:
        """Call this after every move: whoever sleeps until a deadline has to look again."""
        self._listeners.append(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        """Do not call this any more, if it was called at all."""
        with suppress(ValueError):
            self._listeners.remove(listener)
