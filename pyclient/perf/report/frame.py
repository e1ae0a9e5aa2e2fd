"""The frame of a plot: title, legend, grid, axes. Positions are in the units of the view box."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from pyclient.perf.report.scales import Format, Scale, ticks
from pyclient.perf.report.style import COLOURS

WIDTH: Final = 640
HEIGHT: Final = 300
LEFT: Final = 56
RIGHT: Final = WIDTH - 16
TOP: Final = 64
BOTTOM: Final = HEIGHT - 40

_LETTER: Final = 6.6
"""The width of a letter, on average: SVG measures none before it is drawn."""


@dataclass(frozen=True)
class Axis:
    """A scale with its caption and the text of its ticks."""

    scale: Scale
    label: str
    text: Format
    at: Sequence[float] = ()

    @property
    def ticks(self) -> Sequence[float]:
        """The given places, or round ones."""
        return self.at or ticks(self.scale)


def number(value: float) -> str:
    """A coordinate."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    kind = f' class="{kind}"' if kind else ""
    anchor = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{number(x)}" y="{number(y)}"{kind}{anchor}>{escape(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    start = f'x1="{number(x1)}" y1="{number(y1)}"'
    return f'<line {start} x2="{number(x2)}" y2="{number(y2)}" class="{kind}"/>'


def colour(index: int) -> int:
    """The colour of a series."""
    return index % COLOURS


def again(index: int) -> str:
    """Tells series of one colour apart."""
    return " again" if index >= COLOURS else ""


def axes(x: Axis, y: Axis) -> str:
    """Grid, ticks and captions of both axes."""
    parts = []
    for value in y.ticks:
        at = y.scale(value)
        parts.append(line(LEFT, at, RIGHT, at, "grid"))
        parts.append(text(LEFT - 8, at + 4, y.text(value), anchor="end"))
    for value in x.ticks:
        at = x.scale(value)
        parts.append(line(at, BOTTOM, at, BOTTOM + 4, "axis"))
        parts.append(text(at, BOTTOM + 18, x.text(value), anchor="middle"))
    parts.append(line(LEFT, BOTTOM, RIGHT, BOTTOM, "axis"))
    parts.append(text(LEFT, TOP - 10, y.label))
    parts.append(text(RIGHT, HEIGHT - 6, x.label, anchor="end"))
    return "".join(parts)


def legend(names: Sequence[str]) -> str:
    """The names of the series, from the right end of the title's line; none for a single one."""
    if len(names) < 2:
        return ""
    parts = []
    right = float(RIGHT)
    for index, name in reversed(list(enumerate(names))):
        right -= len(name) * _LETTER
        parts.append(text(right, TOP - 10, name, "name"))
        right -= 20
        kind = f"curve s{colour(index)}{again(index)}"
        parts.append(line(right, TOP - 14, right + 14, TOP - 14, kind))
        right -= 12
    return "".join(parts)


def drawing(title: str, body: str, height: float = HEIGHT) -> str:
    """The SVG element; its title is read out by screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
        f'viewBox="0 0 {WIDTH} {number(height)}" aria-label="{escape(title)}">'
        f"{text(4, 20, title, 'title')}{body}</svg>"
    )
