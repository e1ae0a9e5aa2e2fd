"""Charts over an axis: lines, latency by percentile, histograms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from pyclient.perf.report.frame import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Axis,
    again,
    axes,
    colour,
    drawing,
    legend,
    line,
    number,
    text,
)
from pyclient.perf.report.scales import Format, Scale, linear, logarithmic, short_number

POINTS_MAX: Final = 400
"""A longer series is thinned: a plot is 570 units wide."""

_DOTS_MAX: Final = 40
_LABEL_ROOM: Final = 46
_PERCENTILES: Final = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)


@dataclass(frozen=True)
class Series:
    """A named sequence of points, in the order of their x."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Bucket:
    """Values from `low` up to `high`, and how many there were."""

    low: float
    high: float
    count: float


@dataclass(frozen=True)
class Marker:
    """A labelled vertical line."""

    at: float
    label: str


def line_chart(
    title: str,
    series: Sequence[Series],
    *,
    x_label: str = "seconds",
    y_label: str = "",
    y_text: Format = short_number,
    x_text: Format = short_number,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """Lines over a common axis, filled below if there is only one. Hovering shows the values."""
    xs = [x for one in series for x, _ in one.points]
    ys = [y for one in series for _, y in one.points]
    scale = logarithmic(ys, BOTTOM, TOP) if log_y else linear(ys, BOTTOM, TOP)
    x = Axis(logarithmic(xs, LEFT, RIGHT - 8) if log_x else _span(xs), x_label, x_text)
    y = Axis(scale, y_label, y_text)
    return drawing(title, axes(x, y) + _curves(series, x, y) + legend([s.name for s in series]))


def percentile_chart(
    title: str, series: Sequence[Series], *, y_label: str = "ms", y_text: Format = short_number
) -> str:
    """Latency by percentile; each nine takes the same room, as in HdrHistogram's plots.

    The x of a point is a percentile from 0 to 100. Points at 100 are drawn at the right edge.
    """
    below = [p for one in series for p, _ in one.points if p < 100]
    nines = _nines(max(below, default=99.0))
    placed = [
        Series(one.name, [(min(_nines(p), nines), value) for p, value in one.points])
        for one in series
    ]
    at = [_nines(p) for p in _PERCENTILES if _nines(p) <= nines + 1e-9]
    x = Axis(
        Scale(0, max(nines, 1), LEFT, RIGHT - 24),
        "percentile",
        lambda value: f"{round(100 - 100 / 10**value, 6):g}%",
        at,
    )
    ys = [value for one in placed for _, value in one.points]
    y = Axis(logarithmic(ys, BOTTOM, TOP), y_label, y_text)
    body = axes(x, y) + _curves(placed, x, y, dots=False) + legend([s.name for s in series])
    return drawing(title, body)


def histogram_chart(
    title: str,
    buckets: Sequence[Bucket],
    *,
    x_label: str = "ms",
    y_label: str = "records",
    x_text: Format = short_number,
    markers: Sequence[Marker] = (),
) -> str:
    """Columns over a logarithmic axis, with labelled lines such as percentiles."""
    edges = [edge for bucket in buckets for edge in (bucket.low, bucket.high)]
    edges += [marker.at for marker in markers]
    x = Axis(logarithmic(edges, LEFT, RIGHT), x_label, x_text)
    y = Axis(linear([bucket.count for bucket in buckets], BOTTOM, TOP), y_label, short_number)
    columns = []
    for bucket in buckets:
        left, right, top = x.scale(bucket.low), x.scale(bucket.high), y.scale(bucket.count)
        tip = f"{x_text(bucket.low)} to {x_text(bucket.high)} {x_label}: {bucket.count:,.0f}"
        columns.append(
            f'<rect class="column f0" x="{number(left)}" y="{number(top)}" '
            f'width="{number(max(right - left - 0.5, 0.8))}" height="{number(BOTTOM - top)}">'
            f"<title>{escape(tip)}</title></rect>"
        )
    return drawing(title, axes(x, y) + "".join(columns) + _markers(markers, x))


def _markers(markers: Sequence[Marker], x: Axis) -> str:
    """Labels step down where they would cover each other."""
    parts = []
    taken = -math.inf
    level = 0
    for marker in sorted(markers, key=lambda one: one.at):
        at = x.scale(marker.at)
        level = level + 1 if at - taken < _LABEL_ROOM else 0
        taken = at
        y = TOP + 8 + 14 * (level % 5)
        is_left = at + 4 + len(marker.label) * 6.6 > RIGHT
        parts.append(line(at, TOP, at, BOTTOM, "marker"))
        place = (at - 4, "end") if is_left else (at + 4, "start")
        parts.append(text(place[0], y, marker.label, "name", place[1]))
    return "".join(parts)


def _curves(series: Sequence[Series], x: Axis, y: Axis, *, dots: bool = True) -> str:
    parts = []
    for index, one in enumerate(series):
        shown = _thinned(one.points)
        places = [(x.scale(at), y.scale(value)) for at, value in shown]
        if not places:
            continue
        path = " ".join(f"{number(left)},{number(top)}" for left, top in places)
        if len(series) == 1:
            floor = f"{number(places[-1][0])},{BOTTOM} {number(places[0][0])},{BOTTOM}"
            parts.append(f'<polygon class="area f{colour(index)}" points="{path} {floor}"/>')
        kind = f"curve s{colour(index)}{again(index)}"
        parts.append(f'<polyline class="{kind}" points="{path}"/>')
        if not dots or len(shown) > _DOTS_MAX:
            continue
        for (at, value), (left, top) in zip(shown, places, strict=True):
            tip = f"{one.name}: {y.text(value)} {y.label} at {x.text(at)} {x.label}"
            parts.append(
                f'<circle class="dot f{colour(index)}" cx="{number(left)}" cy="{number(top)}" '
                f'r="3.5"><title>{escape(tip)}</title></circle>'
            )
    return "".join(parts)


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most POINTS_MAX points: the highest of each stretch, so that no peak is lost."""
    if len(points) <= POINTS_MAX:
        return list(points)
    stretch = -(-len(points) // POINTS_MAX)
    return [
        max(points[start : start + stretch], key=lambda point: point[1])
        for start in range(0, len(points), stretch)
    ]


def _span(xs: Sequence[float]) -> Scale:
    low, high = min(xs, default=0.0), max(xs, default=1.0)
    return Scale(low, high if high > low else low + 1, LEFT, RIGHT - 8)


def _nines(percentile: float) -> float:
    """99 is 2, 99.9 is 3."""
    return math.inf if percentile >= 100 else -math.log10(1 - percentile / 100)
