"""Latencies of a run: all of them for averages, a bounded sample for percentiles."""

from __future__ import annotations

from array import array
from typing import Final

SAMPLES_MAX: Final = 500_000
REPORTED: Final = ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))


class Latencies:
    """Counts, sum and maximum of what was recorded. Written by one thread."""

    def __init__(self, expected: int) -> None:
        # Every n-th is kept, so that memory stays bounded however long the run is.
        self._stride = max(1, -(-expected // SAMPLES_MAX))
        self._samples = array("d")
        self.count = 0
        self.total_ms = 0.0
        self.max_ms = 0.0

    def record(self, latency_ms: float) -> None:
        """Add one."""
        if self.count % self._stride == 0:
            self._samples.append(latency_ms)
        self.count += 1
        self.total_ms += latency_ms
        if latency_ms > self.max_ms:
            self.max_ms = latency_ms

    @property
    def average_ms(self) -> float:
        """The mean; 0 if nothing was recorded."""
        return self.total_ms / self.count if self.count else 0.0

    def percentiles(self) -> str:
        """Kafka's closing list: `1 ms 50th, 3 ms 95th, 7 ms 99th, 9 ms 99.9th`."""
        ordered = sorted(self._samples) or [0.0]
        values = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share, _ in REPORTED)
        return ", ".join(f"{v:.2f} ms {name}" for v, (_, name) in zip(values, REPORTED, strict=True))
