"""What a streaming query does, from its progress reports: offsets, lag, rows a second.

`progress(query)` prints a table in a terminal and shows a picture in a notebook.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

_BARS: Final = "▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT = 600, 120


class BatchFigures(NamedTuple):
    """One micro-batch."""

    batch_id: int
    rows: int
    rows_per_second: float
    batch_ms: int
    lag: int | None  # None if the source does not tell


class PartitionFigures(NamedTuple):
    """Where a query is in one partition."""

    topic: str
    partition: int
    offset: int  # the next one it reads
    latest: int | None

    @property
    def lag(self) -> int | None:
        """Records that are there and not read yet."""
        return None if self.latest is None else max(0, self.latest - self.offset)


class ProgressView:
    """The figures of a query at one moment; `str()` is a table, a notebook shows a picture."""

    def __init__(self, name: str, reports: Sequence[Mapping[str, Any]]) -> None:
        self.name = name
        self.batches = [_batch(report) for report in reports]
        self.partitions = _partitions(reports[-1]) if reports else []

    def __str__(self) -> str:
        if not self.batches:
            return f"{self.name}: no batch yet"
        last = self.batches[-1]
        rates = [one.rows_per_second for one in self.batches]
        lags = [one.lag or 0 for one in self.batches]
        lines = [
            f"{self.name}: batch {last.batch_id}, {last.rows:,} rows in {last.batch_ms:,} ms",
            f"  rows/s {_bars(rates)} {last.rows_per_second:,.0f}",
            f"  lag    {_bars(lags)} {_count(last.lag)}",
        ]
        if self.partitions:
            names = [f"{one.topic}-{one.partition}" for one in self.partitions]
            width = max(9, *map(len, names))
            lines.append(f"  {'partition':{width}} {'offset':>12} {'latest':>12} {'lag':>10}")
            lines += [
                f"  {name:{width}} {one.offset:12,} {_count(one.latest):>12} {_count(one.lag):>10}"
                for name, one in zip(names, self.partitions, strict=True)
            ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Two curves and the table, as HTML without scripts."""
        rates = [one.rows_per_second for one in self.batches]
        lags = [float(one.lag or 0) for one in self.batches]
        rows = "".join(
            f"<tr><td>{html.escape(one.topic)}-{one.partition}</td><td>{one.offset:,}</td>"
            f"<td>{_count(one.latest)}</td><td>{_count(one.lag)}</td></tr>"
            for one in self.partitions
        )
        return (
            f"<b>{html.escape(self.name)}</b>"
            f"{_curve('rows/s', rates, '#1f77b4')}{_curve('lag', lags, '#d62728')}"
            "<table><tr><th>partition</th><th>offset</th><th>latest</th><th>lag</th></tr>"
            f"{rows}</table>"
        )


def progress(query: StreamingQuery, *, file: TextIO | None = None) -> None:
    """Show what a query does: rows a second and lag batch by batch, offsets by partition.

    Args:
        query: a streaming query, running or ended.
        file: where to print; by default a picture in a notebook, else standard output.
    """
    view = ProgressView(query.name or str(query.id), list(query.recentProgress))
    if file is None and _in_notebook():
        from IPython.display import display

        display(view)
    else:
        print(view, file=file)


def status_line(name: str, report: Mapping[str, Any] | None) -> str:
    """One line about a query's last batch."""
    if report is None:
        return f"{name}: no batch yet"
    batch = _batch(report)
    return (
        f"{name}: batch {batch.batch_id}, {batch.rows:,} rows, "
        f"{batch.rows_per_second:,.0f} rows/s, lag {_count(batch.lag)}, {batch.batch_ms:,} ms"
    )


def _batch(report: Mapping[str, Any]) -> BatchFigures:
    durations = report["durationMs"] or {}
    lags = [one.lag for one in _partitions(report)]
    known = [lag for lag in lags if lag is not None]
    return BatchFigures(
        batch_id=report["batchId"],
        rows=sum(source["numInputRows"] for source in report["sources"]),
        rows_per_second=sum(source["processedRowsPerSecond"] for source in report["sources"]),
        batch_ms=durations.get("triggerExecution", 0),
        lag=sum(known) if known else None,
    )


def _partitions(report: Mapping[str, Any]) -> list[PartitionFigures]:
    found = []
    for source in report["sources"]:
        end, latest = _offsets(source["endOffset"]), _offsets(source["latestOffset"])
        for topic, offsets in sorted(end.items()):
            for number, offset in sorted(offsets.items()):
                newest = latest.get(topic, {}).get(number)
                found.append(PartitionFigures(topic, number, offset, newest))
    return found


def _offsets(given: Any) -> dict[str, dict[int, int]]:
    """Offsets by topic and partition; nothing for sources that are not Kafka's."""
    try:
        nested = json.loads(given) if isinstance(given, str) else given
        return {
            str(topic): {int(number): int(offset) for number, offset in offsets.items()}
            for topic, offsets in nested.items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}


def _bars(figures: Sequence[float]) -> str:
    """The last figures as bars of text."""
    recent = figures[-40:]
    highest = max(recent, default=0) or 1
    return "".join(_BARS[min(7, int(max(0, one) / highest * 7.999))] for one in recent)


def _curve(name: str, figures: Sequence[float], colour: str) -> str:
    highest = max(figures, default=0) or 1
    step = _WIDTH / max(1, len(figures) - 1)
    points = " ".join(
        f"{number * step:.1f},{_HEIGHT - figure / highest * (_HEIGHT - 20):.1f}"
        for number, figure in enumerate(figures)
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT + 4}" role="img" aria-label="{name}">'
        f'<text x="0" y="12" font-size="12">{name}, at most {highest:,.0f}</text>'
        f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/></svg>'
    )


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _in_notebook() -> bool:
    """Whether this runs in a kernel that shows HTML."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell: Any = get_ipython()  # type: ignore[no-untyped-call,unused-ignore]
    return shell is not None and shell.has_trait("kernel")
