"""Colours and fonts of charts and pages, for light and dark.

Charts name classes and variables only, so that a page decides how they look. `standalone` makes a
chart an SVG file of its own.
"""

from typing import Final

COLOURS: Final = 6
"""Series beyond these start over, with dashes."""

_LIGHT: Final = {
    "page": "#f6f7f9",
    "card": "#ffffff",
    "ink": "#16191d",
    "muted": "#5d6673",
    "line": "#e3e7ec",
    "axis": "#aab3bf",
    "good": "#0b7a4b",
    "bad": "#c2291d",
    "s0": "#2563eb",
    "s1": "#e2660b",
    "s2": "#0d9467",
    "s3": "#8b3fd9",
    "s4": "#d6336c",
    "s5": "#0a8ea8",
}
_DARK: Final = {
    "page": "#0f1216",
    "card": "#181c22",
    "ink": "#e8ebef",
    "muted": "#9aa4b1",
    "line": "#2a3038",
    "axis": "#525c69",
    "good": "#4cc38a",
    "bad": "#ff8a7e",
    "s0": "#6ea8fe",
    "s1": "#ffa057",
    "s2": "#3ccf9b",
    "s3": "#c298ff",
    "s4": "#ff85ad",
    "s5": "#4ccfe6",
}


def _variables(selector: str, colours: dict[str, str]) -> str:
    body = "".join(f"--{name}:{value};" for name, value in colours.items())
    return f"{selector}{{{body}}}"


VARIABLES: Final = (
    _variables(":root", _LIGHT)
    + f"@media(prefers-color-scheme:dark){{{_variables(':root', _DARK)}}}"
)

CHART: Final = (
    """
.chart{display:block;width:100%;height:auto;font:12px system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
.chart text{fill:var(--muted)}
.chart .title{fill:var(--ink);font-size:14px;font-weight:600}
.chart .name{fill:var(--ink)}
.chart .value{fill:var(--ink);font-weight:600}
.chart .grid{stroke:var(--line);stroke-width:1}
.chart .axis{stroke:var(--axis);stroke-width:1}
.chart .marker{stroke:var(--muted);stroke-width:1;stroke-dasharray:3 3}
.chart .curve{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.chart .area{stroke:none;opacity:.12}
.chart .again{stroke-dasharray:6 4}
.chart .column{opacity:.75}
.chart .dot{stroke:var(--card);stroke-width:1.5}
"""
    + "".join(
        f".chart .s{n}{{stroke:var(--s{n})}}.chart .f{n}{{fill:var(--s{n})}}"
        for n in range(COLOURS)
    )
).replace("\n", "")


def standalone(chart: str) -> str:
    """A chart as an SVG file: with its own colours, for an `img` element or a README."""
    style = f"<style>{VARIABLES}{CHART}svg{{background:var(--card)}}</style>"
    head, end, rest = chart.partition(">")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{end}{style}{rest}'
