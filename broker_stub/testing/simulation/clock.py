"""Simulated time: it stands still while code runs, and jumps to the next event.

Counted in whole microseconds, so that two sums that mean the same moment are the same number.
"""

import math
from typing import Final

_START_MS: Final = 1_700_000_000_000


class SimulatedClock:
    """The clock of everything in a world. The scheduler alone moves it.

    Attributes:
        now_us: microseconds since the world began.
    """

    def __init__(self) -> None:
        self.now_us = 0

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        return _START_MS + self.now_us // 1000

    def monotonic_ms(self) -> float:
        """Milliseconds since the world began."""
        return self.now_us / 1000

    def after(self, delay_ms: float) -> int:
        """The moment `delay_ms` from now; never now itself, or a loop could turn for ever."""
        return self.now_us + max(1, math.ceil(delay_ms * 1000))
