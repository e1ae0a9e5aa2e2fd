"""Rates, averages and maxima over the last sample windows, as Kafka's metrics have them.

Whoever owns the totals adds to them, on one thread, and rolls them now and then; that is all the
work there is on a hot path. Any thread may read: the figures are worked out then.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

WINDOW_MS: Final = 30_000
WINDOWS: Final = 2


class _Sample(NamedTuple):
    """The totals at the start of a window."""

    time_ms: float
    totals: dict[str, float]


class WindowedTotals:
    """Named totals, and what they grew by lately.

    Attributes:
        totals: since the beginning; the owner adds to them.
        next_roll_ms: when the owner should roll.
    """

    def __init__(self, names: Iterable[str], now_ms: float) -> None:
        self.totals: dict[str, float] = dict.fromkeys(names, 0)
        self._maxima: deque[dict[str, float]] = deque([{}], WINDOWS)
        self._samples: deque[_Sample] = deque([_Sample(now_ms, dict(self.totals))], WINDOWS)
        self.next_roll_ms = now_ms + WINDOW_MS

    def maximum(self, name: str, value: float) -> None:
        """Note a value of which the largest is wanted."""
        window = self._maxima[-1]
        if value > window.get(name, float("-inf")):
            window[name] = value

    def roll(self, now_ms: float) -> None:
        """Begin the next window if it is time; the oldest one is forgotten."""
        if now_ms >= self.next_roll_ms:
            self._samples.append(_Sample(now_ms, dict(self.totals)))
            self._maxima.append({})
            self.next_roll_ms = now_ms + WINDOW_MS

    def rate(self, name: str, now_ms: float) -> float:
        """Growth per second."""
        oldest = self._samples[0]
        # Kafka's rule too: the first seconds count as a whole window, or they would show peaks.
        elapsed_ms = max(now_ms - oldest.time_ms, WINDOW_MS * (WINDOWS - 1))
        return (self.totals[name] - oldest.totals[name]) * 1000 / elapsed_ms

    def average(self, sum_name: str, count_name: str) -> float:
        """The growth of a sum by that of a count; NaN, as in Kafka, if nothing was counted."""
        oldest = self._samples[0].totals
        count = self.totals[count_name] - oldest[count_name]
        return (self.totals[sum_name] - oldest[sum_name]) / count if count else float("nan")

    def largest(self, name: str) -> float:
        """The largest value; NaN if there was none."""
        return max(
            (window[name] for window in tuple(self._maxima) if name in window),
            default=float("nan"),
        )
