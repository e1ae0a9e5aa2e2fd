"""The report of load test results: one run in detail, or several side by side."""

from collections.abc import Sequence
from typing import Final

from pyclient.perf.report.bars import BarGroup, bar_chart
from pyclient.perf.report.curves import (
    Bucket,
    Marker,
    Series,
    histogram_chart,
    line_chart,
    percentile_chart,
)
from pyclient.perf.report.page import Section, page, table
from pyclient.perf.report.scales import short_number
from pyclient.perf.result import PERCENTILES, Result, comparison
from pyclient.version import __version__

_BUCKET_BASE: Final = 1.12
_TICKS_PER_HALF: Final = 5


def results_page(title: str, results: Sequence[Result]) -> str:
    """A self-contained HTML page with the plots of these runs."""
    sections = [_summary(results), _over_time(results), _latencies(results)]
    sections = [each for each in sections if each.tables or each.charts]
    footer = f"Written by kafka-pyclient {__version__}. Latencies in HDR histograms."
    return page(title, sections, subtitle=" · ".join(one.name for one in results), footer=footer)


def _summary(results: Sequence[Result]) -> Section:
    first = results[0]
    head, *rows = comparison(results)
    figures = [
        (short_number(first.records_per_second), "records/s"),
        (short_number(first.megabytes_per_second), "MB/s"),
        (f"{short_number(first.percentile_ms(50))} ms", "50th percentile"),
        (f"{short_number(first.percentile_ms(99))} ms", "99th percentile"),
        (f"{short_number(first.max_ms)} ms", "longest"),
    ]
    return Section(
        "Summary",
        figures=figures if len(results) == 1 else (),
        tables=[table(head, rows)],
        charts=_comparison(results) if len(results) > 1 else (),
    )


def _comparison(results: Sequence[Result]) -> list[str]:
    rates: list[tuple[str, float | None]] = [(r.name, r.records_per_second) for r in results]
    tails: list[tuple[str, float | None]] = [(r.name, r.percentile_ms(99)) for r in results]
    return [
        bar_chart("Throughput", [BarGroup("", rates)], label="records/s, more is better"),
        bar_chart("99th percentile", [BarGroup("", tails)], label="ms, less is better"),
    ]


def _over_time(results: Sequence[Result]) -> Section:
    def series(value: str, factor: float = 1.0) -> list[Series]:
        return [
            Series(
                one.name,
                [((w.start_ms + w.length_ms) / 1000, getattr(w, value) * factor) for w in whole],
            )
            for one in results
            # A short last window says little, and its rates are off.
            if (whole := [w for w in one.windows if w.length_ms >= 200] or one.windows)
        ]

    if not any(one.windows for one in results):
        return Section("Over time")
    return Section(
        "Over time",
        charts=[
            line_chart("Throughput", series("records_per_second"), y_label="records/s"),
            line_chart("99th percentile", series("p99_ms"), y_label="ms"),
            line_chart("CPU of the process", series("cpu_share", 100), y_label="% of a core"),
            line_chart("Longest", series("max_ms"), y_label="ms"),
        ],
    )


def _latencies(results: Sequence[Result]) -> Section:
    results = [one for one in results if one.percentiles is None]  # others tell only a few
    curves = [Series(one.name, _percentiles(one)) for one in results]
    charts = [percentile_chart("Latency by percentile", curves)] if curves else []
    for one in results:
        markers = [Marker(one.percentile_ms(at), name) for at, name in PERCENTILES]
        title = "Latency" if len(results) == 1 else f"Latency of {one.name}"
        charts.append(histogram_chart(title, _buckets(one), markers=markers))
    return Section("Latency", charts=charts)


def _percentiles(one: Result) -> list[tuple[float, float]]:
    return [
        (step.percentile_level_iterated_to, step.value_iterated_to / 1000)
        for step in one.histogram.get_percentile_iterator(_TICKS_PER_HALF)
    ]


def _buckets(one: Result) -> list[Bucket]:
    """Columns that grow with the latency, so that the body and the tail are both seen."""
    found: dict[int, tuple[float, float, float]] = {}
    for step in one.histogram.get_recorded_iterator():
        value = step.value_iterated_to / 1000
        index, low = 0, 0.001
        while low * _BUCKET_BASE <= value:
            low *= _BUCKET_BASE
            index += 1
        count = found.get(index, (low, 0.0, 0.0))[2] + step.count_at_value_iterated_to
        found[index] = (low, low * _BUCKET_BASE, count)
    return [Bucket(*found[index]) for index in sorted(found)]
