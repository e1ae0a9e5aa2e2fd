"""A page from sections: figures, charts and tables, in one file without scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from pyclient.perf.report.style import CHART, VARIABLES

_PAGE: Final = """
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1180px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:18px;margin:36px 0 12px}
p{margin:0 0 12px;color:var(--muted);max-width:80ch}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px}
.charts{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr))}
.figures{display:grid;gap:12px;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));
margin:0 0 16px}
.figure b{display:block;font-size:22px;line-height:1.2;font-variant-numeric:tabular-nums}
.figure span{color:var(--muted);font-size:13px}
.scroll{overflow-x:auto;margin:0 0 16px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px}
th,td{padding:7px 12px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--muted);font-size:13px}
tr:last-child td{border-bottom:0}
th:first-child,td:first-child{text-align:left}
footer{margin-top:40px;color:var(--muted);font-size:13px}
@media print{.card{break-inside:avoid}}
""".replace("\n", "")


@dataclass(frozen=True)
class Section:
    """A heading with what belongs below it.

    `figures` are large numbers with a caption each, `charts` SVG texts, `tables` HTML texts.
    """

    heading: str
    text: str = ""
    figures: Sequence[tuple[str, str]] = ()
    tables: Sequence[str] = ()
    charts: Sequence[str] = ()


def page(title: str, sections: Sequence[Section], *, subtitle: str = "", footer: str = "") -> str:
    """The whole page, as text."""
    body = "".join(map(_section, sections))
    end = f"<footer>{escape(footer)}</footer>" if footer else ""
    head = f"<p>{escape(subtitle)}</p>" if subtitle else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{VARIABLES}{_PAGE}{CHART}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{head}{body}{end}</main></body></html>\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table; the first column is text, the others are numbers."""
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.heading)}</h2>"]
    if section.text:
        parts.append(f"<p>{escape(section.text)}</p>")
    if section.figures:
        figures = "".join(
            f'<div class="card figure"><b>{escape(value)}</b><span>{escape(caption)}</span></div>'
            for value, caption in section.figures
        )
        parts.append(f'<div class="figures">{figures}</div>')
    parts += [f'<div class="card scroll">{each}</div>' for each in section.tables]
    if section.charts:
        charts = "".join(f'<div class="card">{chart}</div>' for chart in section.charts)
        parts.append(f'<div class="charts">{charts}</div>')
    return f"<section>{''.join(parts)}</section>"
