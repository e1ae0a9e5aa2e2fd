"""Horizontal bars in groups: names of any length fit, and each bar has its value beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from pyclient.perf.report.frame import TOP, WIDTH, colour, drawing, line, number, text
from pyclient.perf.report.scales import Format, short_number

_LEFT: Final = 150
_RIGHT: Final = WIDTH - 76
_BAR: Final = 18
_GAP: Final = 14


@dataclass(frozen=True)
class BarGroup:
    """Bars that belong together: a name and a value each. None is drawn as missing."""

    name: str
    bars: Sequence[tuple[str, float | None]]


def bar_chart(
    title: str,
    groups: Sequence[BarGroup],
    *,
    label: str = "",
    value_text: Format = short_number,
    marker: tuple[float, str] | None = None,
) -> str:
    """Bars from zero; a bar's colour follows its place in the group.

    `marker` is a labelled line across all bars, such as a ratio of 1.
    """
    values = [value for group in groups for _, value in group.bars if value is not None]
    high = max([*values, *([marker[0]] if marker else [])], default=0.0) or 1.0
    width = _RIGHT - _LEFT
    is_grouped = len(groups) > 1 or bool(groups and groups[0].name)
    parts = [text(_LEFT, TOP - 26, label)]
    y = float(TOP - 12)
    top = y
    for group in groups:
        if is_grouped:
            parts.append(text(4, y + 13, group.name, "title"))
            y += 22
        for index, (name, value) in enumerate(group.bars):
            parts.append(text(_LEFT - 10, y + 13, name, "name", "end"))
            if value is None:
                parts.append(text(_LEFT + 4, y + 13, "not measured"))
            else:
                length = max(value / high * width, 1.0)
                tip = escape(f"{name}: {value_text(value)} {label}".strip())
                parts.append(
                    f'<rect class="f{colour(index)}" x="{_LEFT}" y="{number(y)}" rx="2" '
                    f'width="{number(length)}" height="{_BAR}"><title>{tip}</title></rect>'
                )
                parts.append(text(_LEFT + length + 6, y + 13, value_text(value), "value"))
            y += _BAR + 6
        y += _GAP
    if marker:
        at = _LEFT + marker[0] / high * width
        parts.append(line(at, top, at, y - _GAP, "marker"))
        parts.append(text(at, y + 2, marker[1], anchor="middle"))
        y += _GAP
    return drawing(title, "".join(parts), y + 2)
