"""Simulated time: it stands still while code runs, and jumps to the next event.

Counted in whole microseconds, so that two sums that mean the same moment are the same number.
"""

import math
from typing import Final

from broker_stub.testing.simulation.chance import Chance
from broker_stub.testing.simulation.weather import Weather

_START_MS: Final = 1_700_000_000_000
_SET_EVERY_MS: Final = 3_000.0


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


class SkewedClock:
    """The clock of one machine: the same seconds, but another time of day, which may jump."""

    def __init__(self, clock: SimulatedClock, weather: Weather, chance: Chance) -> None:
        self._clock = clock
        self._weather = weather
        self._chance = chance
        self._skew_ms = 0
        self._set_at_us = 0

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, as this machine believes."""
        skew_ms = self._weather.now.skew_ms
        if not skew_ms:
            return self._clock.now_ms()
        if self._clock.now_us >= self._set_at_us:
            self._skew_ms = int(self._chance.uniform(-skew_ms, skew_ms))
            self._set_at_us = self._clock.after(self._chance.exponential(_SET_EVERY_MS))
        return self._clock.now_ms() + self._skew_ms

    def monotonic_ms(self) -> float:
        """Milliseconds since the world began; they never jump."""
        return self._clock.monotonic_ms()
