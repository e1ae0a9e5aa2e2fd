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
    """The interface of clocks."""

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
    """A clock for tests, which stands still until it is advanced.

    It starts at the machine's time, so that it agrees with the timestamps of ordinary clients.
    Pass a start for reproducible runs.
    """

    def __init__(self, now_ms: int | None = None) -> None:
        self._start_ms = SystemClock().now_ms() if now_ms is None else now_ms
        self._elapsed_ms = 0.0
        self._listeners: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        """The start plus all advances."""
        return self._start_ms + int(self._elapsed_ms)

    def monotonic_ms(self) -> float:
        """The sum of all advances."""
        return self._elapsed_ms

    def advance(self, milliseconds: float) -> None:
        """Move both readings forward.

        Raises:
            ValueError: it is negative, infinite or NaN.
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
        """Call `listener` after every advance, so that waits for a deadline can be checked."""
        self._listeners.append(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        """Stop calling `listener`, if it is registered."""
        with suppress(ValueError):
            self._listeners.remove(listener)
