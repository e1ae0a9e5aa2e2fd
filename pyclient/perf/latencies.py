"""Latencies of a run: average, maximum, percentiles."""

from array import array
from typing import Final

REPORTED: Final = ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))


class Latencies:
    """What was recorded, in milliseconds. Written by one thread; eight bytes each."""

    def __init__(self) -> None:
        self._samples = array("d")

    def record(self, latency_ms: float) -> None:
        self._samples.append(latency_ms)

    @property
    def average_ms(self) -> float:
        """The mean; 0 if nothing was recorded."""
        return sum(self._samples) / len(self._samples) if self._samples else 0.0

    @property
    def max_ms(self) -> float:
        """The longest; 0 if nothing was recorded."""
        return max(self._samples, default=0.0)

    def percentile(self, share: float) -> float:
        """The latency that `share` of them did not exceed; 0 if nothing was recorded."""
        ordered = sorted(self._samples)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    def percentiles(self) -> str:
        """Kafka's closing list: `1 ms 50th, 3 ms 95th, 7 ms 99th, 9 ms 99.9th`."""
        return ", ".join(f"{self.percentile(share):.2f} ms {name}" for share, name in REPORTED)
