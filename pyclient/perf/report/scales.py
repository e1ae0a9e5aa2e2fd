"""From values to positions: linear and logarithmic scales, round ticks, short numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Format = Callable[[float], str]

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_SUFFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_LOG_TICKS_MAX: Final = 8


def short_number(value: float) -> str:
    """Three significant digits at most: `0.25`, `12.5`, `1.5k`, `2M`."""
    for size, suffix in _SUFFIXES:
        if abs(value) >= size * 0.9995:
            return f"{_three_digits(value / size)}{suffix}"
    return _three_digits(value)


def _three_digits(value: float) -> str:
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class Scale:
    """Maps values between `low` and `high` to positions between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            value = math.log10(max(value, low))
            low, high = math.log10(low), math.log10(high)
        share = (value - low) / (high - low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)


def linear(values: list[float], start: float, end: float, *, from_zero: bool = True) -> Scale:
    """A scale with round ends that covers the values."""
    low = min(values, default=0.0)
    low = min(low, 0.0) if from_zero else low
    high = max(values, default=1.0)
    if high <= low:
        high = low + 1
    step = tick_step(low, high)
    low = math.floor(low / step) * step
    return Scale(low, math.ceil(high / step - 1e-9) * step, start, end)


def logarithmic(values: list[float], start: float, end: float) -> Scale:
    """A logarithmic scale that covers the positive values, at least a decade."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive), max(positive)
    if high < low * 10:
        low, high = low / 2, max(high * 1.2, low * 5)
    return Scale(low, high * 1.05, start, end, logarithmic=True)


def tick_step(low: float, high: float, count: int = 5) -> float:
    """The round step that gives about `count` ticks."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * 0.999)


def ticks(scale: Scale) -> list[float]:
    """Round values within the scale."""
    if scale.logarithmic:
        return _log_ticks(scale)
    step = tick_step(scale.low, scale.high)
    first = math.ceil(scale.low / step - 1e-9)
    last = math.floor(scale.high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _log_ticks(scale: Scale) -> list[float]:
    first = math.floor(math.log10(scale.low))
    last = math.ceil(math.log10(scale.high))
    # Fewer steps a decade where there are many decades, and fewer decades where even that is full.
    for steps in ((1, 2, 5), (1,)):
        found = [
            step * 10.0**power
            for power in range(first, last + 1)
            for step in steps
            if scale.low <= step * 10.0**power <= scale.high
        ]
        if len(found) <= _LOG_TICKS_MAX:
            return found
    stride = math.ceil(len(found) / _LOG_TICKS_MAX)
    return found[::stride]
