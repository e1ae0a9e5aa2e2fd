"""The figures of a run: Kafka's closing line, and JSON for scripts and reports.

Results and windows of several processes add up to one, percentiles included: histograms add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from pyclient.errors import KafkaConfigurationError
from pyclient.perf.recorder import Window, new_histogram

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

MEGABYTE: Final = 1024 * 1024
PERCENTILES: Final = ((50.0, "50th"), (95.0, "95th"), (99.0, "99th"), (99.9, "99.9th"))


@dataclass(frozen=True)
class Result:
    """A run that is over, or was interrupted. The histogram counts microseconds.

    Foreign tools tell only a few percentiles: `percentiles` holds them, and the histogram is empty.
    """

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
    verb: str = "sent"
    percentiles: Mapping[float, float] | None = None

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
        if self.percentiles is not None:
            return self.percentiles[percentile]
        return float(self.histogram.get_value_at_percentile(percentile)) / 1000

    def line(self) -> str:
        """Kafka's closing line."""
        rest = ", ".join(f"{self.percentile_ms(at):.2f} ms {name}" for at, name in PERCENTILES)
        return (
            f"{self.records} records {self.verb}, {self.records_per_second:.1f} records/sec "
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
            "verb": self.verb,
            "windows": [window_to_json(window) for window in self.windows],
            "histogram": None if self.percentiles else self.histogram.encode().decode(),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Result:
        """What `to_json` returned.

        Raises:
            KafkaConfigurationError: it is something else.
        """
        try:
            encoded, latencies = document["histogram"], document["latency_ms"]
            return cls(
                name=document["name"],
                records=document["records"],
                size=document["bytes"],
                elapsed_ms=document["elapsed_ms"],
                average_ms=latencies["avg"],
                max_ms=latencies["max"],
                histogram=new_histogram() if encoded is None else _decoded(encoded),
                windows=[window_from_json(window) for window in document["windows"]],
                failed=document["failed"],
                first_error=document["first_error"],
                interrupted=document["interrupted"],
                cpu_seconds=document["cpu_seconds"],
                verb=document["verb"],
                percentiles=None
                if encoded is not None
                else {at: latencies[f"p{at:g}"] for at, _ in PERCENTILES},
            )
        except (KeyError, TypeError) as error:
            raise KafkaConfigurationError(f"not the result of a load test: {error}") from error


def _decoded(text: str) -> HdrHistogram:
    from hdrh.histogram import HdrHistogram

    return HdrHistogram.decode(text)


def window_to_json(window: Window) -> dict[str, Any]:
    """A window's figures, its histogram encoded."""
    document = {each.name: getattr(window, each.name) for each in fields(window)}
    if window.histogram is not None:
        document["histogram"] = window.histogram.encode().decode()
    return document


def window_from_json(document: Mapping[str, Any]) -> Window:
    """What `window_to_json` returned."""
    encoded = document["histogram"]
    return Window(**{**document, "histogram": None if encoded is None else _decoded(encoded)})


def merged_windows(windows: Sequence[Window]) -> Window:
    """The same stretch, of several processes."""
    histogram = new_histogram()
    for each in windows:
        if each.histogram is not None:
            histogram.add(each.histogram)
    records = sum(each.records for each in windows)
    return Window(
        start_ms=min(each.start_ms for each in windows),
        length_ms=max(each.length_ms for each in windows),
        records=records,
        size=sum(each.size for each in windows),
        p50_ms=histogram.get_value_at_percentile(50) / 1000,
        p99_ms=histogram.get_value_at_percentile(99) / 1000,
        average_ms=sum(each.average_ms * each.records for each in windows) / max(records, 1),
        max_ms=max(each.max_ms for each in windows),
        cpu_share=sum(each.cpu_share for each in windows),
        histogram=histogram,
    )


def merged_results(results: Sequence[Result]) -> Result:
    """One run of several processes."""
    if len(results) == 1:
        return results[0]
    histogram = new_histogram()
    for each in results:
        histogram.add(each.histogram)
    records = sum(each.records for each in results)
    columns = zip_longest(*(each.windows for each in results))
    return Result(
        name=results[0].name,
        records=records,
        size=sum(each.size for each in results),
        elapsed_ms=max(each.elapsed_ms for each in results),
        average_ms=sum(each.average_ms * each.records for each in results) / max(records, 1),
        max_ms=max(each.max_ms for each in results),
        histogram=histogram,
        windows=[merged_windows([one for one in column if one]) for column in columns],
        failed=sum(each.failed for each in results),
        first_error=next((each.first_error for each in results if each.first_error), ""),
        interrupted=any(each.interrupted for each in results),
        cpu_seconds=sum(each.cpu_seconds for each in results),
        verb=results[0].verb,
    )


def comparison(results: Sequence[Result]) -> list[list[str]]:
    """A table of runs: its head, then a row each."""
    head = ["run", "records", "records/s", "MB/s", "avg ms", *(f"{n} ms" for _, n in PERCENTILES)]
    rows = [
        [
            f"{one.name} (interrupted)" if one.interrupted else one.name,
            f"{one.records:,}",
            f"{one.records_per_second:,.0f}",
            f"{one.megabytes_per_second:,.2f}",
            f"{one.average_ms:.2f}",
            *(f"{one.percentile_ms(at):.2f}" for at, _ in PERCENTILES),
            f"{one.max_ms:.2f}",
            f"{one.cpu_seconds * 1e6 / one.records:.2f}" if one.records else "-",
        ]
        for one in results
    ]
    return [[*head, "max ms", "CPU us/record"], *rows]


def window_line(window: Window, verb: str = "sent") -> str:
    """Kafka's line for a stretch of the run."""
    rate = window.records_per_second
    megabytes = window.size * 1000 / max(window.length_ms, 0.001) / MEGABYTE
    return (
        f"{window.records} records {verb}, {rate:.1f} records/sec ({megabytes:.2f} MB/sec), "
        f"{window.average_ms:.1f} ms avg latency, {window.max_ms:.1f} ms max latency."
    )
