"""Collects latencies while a load runs, and sums them up in HDR histograms.

While the load runs, a latency costs an append to an array: a histogram's record costs more than a
send. The arrays become histograms (the library hdrhistogram) when the run is over, or a window is
asked for.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyclient.clock import Clock, SystemClock
from pyclient.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

LONGEST_US: Final = 3_600_000_000
"""An hour: what takes longer is recorded as an hour."""

_DIGITS: Final = 3


@dataclass(frozen=True)
class Window:
    """A stretch of the run: its start and length in milliseconds, and what was done in it."""

    start_ms: float
    length_ms: float
    records: int
    size: int
    p50_ms: float
    p99_ms: float
    average_ms: float
    max_ms: float
    cpu_share: float
    histogram: HdrHistogram | None = field(default=None, compare=False, repr=False)

    @property
    def records_per_second(self) -> float:
        """The rate in this window."""
        return self.records * 1000 / self.length_ms if self.length_ms else 0.0


def new_histogram() -> HdrHistogram:
    """An empty histogram of microseconds, precise to three digits.

    Raises:
        KafkaConfigurationError: the library is not installed.
    """
    try:
        from hdrh.histogram import HdrHistogram
    except ImportError as error:
        raise KafkaConfigurationError(
            "load tests need the package hdrhistogram: pip install 'kafka-pyclient[cli]'"
        ) from error
    return HdrHistogram(1, LONGEST_US, _DIGITS)


def add_latencies(histogram: HdrHistogram, latencies_ms: array[float]) -> None:
    """Record all of them. Equal ones, to the microsecond, at once."""
    counts = Counter(min(max(int(ms * 1000), 1), LONGEST_US) for ms in latencies_ms)
    for value, count in counts.items():
        histogram.record_value(value, count)


def cpu_seconds() -> float:
    """CPU time of this process so far, user and system."""
    times = os.times()
    return times.user + times.system


class Recorder:
    """Latencies and sizes of one run.

    `record` may be called by any thread, `end_window` and `end` by one.
    """

    def __init__(self, clock: Clock | None = None, *, weight: int = 1) -> None:
        """Begin a run now; each latency stands for `weight` records, where only a sample is."""
        self._weight = weight
        self._total_ms = self.max_ms = 0.0
        self._clock = clock or SystemClock()
        self.start_ms = self._clock.monotonic_ms()
        self._histogram = new_histogram()
        self._latencies = array("d")
        self._size = 0
        self._window_start_ms = self.start_ms
        self._window_cpu = cpu_seconds()
        self._window_size = 0
        self.windows: list[Window] = []
        self.records = 0

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._size * self._weight

    @property
    def elapsed_ms(self) -> float:
        """From the start to the end of the last window that is closed."""
        return self._window_start_ms - self.start_ms

    @property
    def average_ms(self) -> float:
        """The mean latency of all windows that are closed."""
        return self._total_ms * self._weight / self.records if self.records else 0.0

    def record(self, latency_ms: float, size: int = 0) -> None:
        """A record of `size` bytes was done after `latency_ms`."""
        self._latencies.append(latency_ms)
        self._size += size

    def record_since(self, due_ms: float, size: int = 0) -> None:
        """A record that was due at `due_ms`, as a `Pacer` returned it, is done now."""
        self.record(self._clock.monotonic_ms() - due_ms, size)

    def window_age_ms(self) -> float:
        """How long the current window is."""
        return self._clock.monotonic_ms() - self._window_start_ms

    def end_window(self) -> Window:
        """Close the current window and begin the next."""
        now_ms, cpu = self._clock.monotonic_ms(), cpu_seconds()
        done, self._latencies = self._latencies, array("d")
        size = self._size
        length_ms = now_ms - self._window_start_ms
        histogram = new_histogram()
        add_latencies(histogram, done)
        self._histogram.add(histogram)
        self.records += len(done) * self._weight
        self._total_ms += sum(done)
        self.max_ms = max(self.max_ms, max(done)) if done else self.max_ms
        window = Window(
            start_ms=self._window_start_ms - self.start_ms,
            length_ms=length_ms,
            records=len(done) * self._weight,
            size=(size - self._window_size) * self._weight,
            p50_ms=histogram.get_value_at_percentile(50) / 1000 if done else 0.0,
            p99_ms=histogram.get_value_at_percentile(99) / 1000 if done else 0.0,
            average_ms=sum(done) / len(done) if done else 0.0,
            max_ms=max(done, default=0.0),
            cpu_share=(cpu - self._window_cpu) * 1000 / length_ms if length_ms else 0.0,
            histogram=histogram,
        )
        self.windows.append(window)
        self._window_start_ms, self._window_cpu, self._window_size = now_ms, cpu, size
        return window

    def end(self) -> HdrHistogram:
        """Close the last window; the histogram of the whole run, in microseconds."""
        self.end_window()
        return self._histogram
