"""The figures of a run: Kafka's closing line, and JSON for scripts and reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyclient.errors import KafkaConfigurationError
from pyclient.perf.recorder import Window

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

MEGABYTE: Final = 1024 * 1024
PERCENTILES: Final = ((50.0, "50th"), (95.0, "95th"), (99.0, "99th"), (99.9, "99.9th"))


@dataclass(frozen=True)
class Result:
    """A run that is over, or was interrupted. The histogram counts microseconds."""

    name: str
    records: int
    size: int
    elapsed_ms: float
    average_ms: float
    max_ms: float
    histogram: HdrHistogram
    windows: list[Window] = field(default_factory=list)
    failed: int = 0
    first_error: str = ""
    interrupted: bool = False
    cpu_seconds: float = 0.0

    @property
    def records_per_second(self) -> float:
        """Over the whole run."""
        return self.records * 1000 / max(self.elapsed_ms, 0.001)

    @property
    def megabytes_per_second(self) -> float:
        """In units of 1,048,576 bytes, as Kafka's tools count."""
        return self.size * 1000 / max(self.elapsed_ms, 0.001) / MEGABYTE

    def percentile_ms(self, percentile: float) -> float:
        """The latency that this percentage of the records did not exceed."""
        return float(self.histogram.get_value_at_percentile(percentile)) / 1000

    def line(self) -> str:
        """Kafka's closing line."""
        rest = ", ".join(f"{self.percentile_ms(at):.2f} ms {name}" for at, name in PERCENTILES)
        return (
            f"{self.records} records sent, {self.records_per_second:.1f} records/sec "
            f"({self.megabytes_per_second:.2f} MB/sec), {self.average_ms:.2f} ms avg latency, "
            f"{self.max_ms:.2f} ms max latency, {rest}."
        )

    def to_json(self) -> dict[str, Any]:
        """All figures; the histogram is in HdrHistogram's own encoding (V2, base64)."""
        return {
            "name": self.name,
            "records": self.records,
            "bytes": self.size,
            "elapsed_ms": self.elapsed_ms,
            "records_per_second": self.records_per_second,
            "megabytes_per_second": self.megabytes_per_second,
            "latency_ms": {
                "avg": self.average_ms,
                "max": self.max_ms,
                **{f"p{at:g}": self.percentile_ms(at) for at, _ in PERCENTILES},
            },
            "failed": self.failed,
            "first_error": self.first_error,
            "interrupted": self.interrupted,
            "cpu_seconds": self.cpu_seconds,
            "windows": [asdict(window) for window in self.windows],
            "histogram": self.histogram.encode().decode(),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Result:
        """What `to_json` returned.

        Raises:
            KafkaConfigurationError: it is something else.
        """
        from hdrh.histogram import HdrHistogram

        try:
            return cls(
                name=document["name"],
                records=document["records"],
                size=document["bytes"],
                elapsed_ms=document["elapsed_ms"],
                average_ms=document["latency_ms"]["avg"],
                max_ms=document["latency_ms"]["max"],
                histogram=HdrHistogram.decode(document["histogram"]),
                windows=[Window(**window) for window in document["windows"]],
                failed=document["failed"],
                first_error=document["first_error"],
                interrupted=document["interrupted"],
                cpu_seconds=document["cpu_seconds"],
            )
        except (KeyError, TypeError) as error:
            raise KafkaConfigurationError(f"not the result of a load test: {error}") from error


def window_line(window: Window) -> str:
    """Kafka's line for a stretch of the run."""
    rate = window.records_per_second
    megabytes = window.size * 1000 / max(window.length_ms, 0.001) / MEGABYTE
    return (
        f"{window.records} records sent, {rate:.1f} records/sec ({megabytes:.2f} MB/sec), "
        f"{window.average_ms:.1f} ms avg latency, {window.max_ms:.1f} ms max latency."
    )
