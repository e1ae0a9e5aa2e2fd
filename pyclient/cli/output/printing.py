"""Prints rows as a table or as JSON.

On a terminal, tables fit its width and have colours (by rich). In a pipe, columns are aligned and
nothing is cut or coloured, so that grep and awk work.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])
Row = Mapping[str, Any]


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        key: of the row's value.
        title: the heading; the key in capitals without it.
        right: aligned to the right, as numbers are.
        style: rich's style of the values, or a function from a value to it.
        show: converts a value to text.
        wrap: a long value takes several lines, rather than being cut.
    """

    key: str
    title: str | None = None
    right: bool = False
    style: str | Callable[[Any], str] = ""
    show: Callable[[Any], str] | None = None
    wrap: bool = False

    @property
    def heading(self) -> str:
        return self.title if self.title is not None else self.key.replace("_", " ").upper()

    def text(self, row: Row) -> str:
        value = row.get(self.key)
        if self.show is not None and value is not None:
            return self.show(value)
        return as_text(value)


class Output:
    """Where a command prints its results; `as_json` is the user's choice."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def rows(
        self, rows: Sequence[Row], columns: Sequence[Column], *, empty: str = "", title: str = ""
    ) -> None:
        """A table, or a JSON array; `empty` is said on standard error if there is no row."""
        if self.as_json:
            self.json(list(rows))
        elif rows:
            print_table(rows, columns, title)
        elif empty:
            self.note(empty)

    def json(self, value: Any) -> None:
        """A JSON document, indented on a terminal."""
        indent = 2 if sys.stdout.isatty() else None
        print(json.dumps(value, indent=indent, ensure_ascii=False, default=str))

    def fields(self, pairs: Mapping[str, Any]) -> None:
        """Facts about one thing, a line each."""
        width = max(len(name) for name in pairs)
        for name, value in pairs.items():
            label = click.style(f"{name:<{width}}", dim=True)
            click.echo(f"{label}  {as_text(value)}")

    def done(self, text: str, **facts: Any) -> None:
        """What was done: a line, or its facts as JSON."""
        if self.as_json:
            self.json(facts)
        else:
            click.echo(text)

    def note(self, text: str) -> None:
        """A remark that is not a result, on standard error."""
        click.echo(text, err=True)


def output_options(function: Function) -> Function:
    """Give a command `--json`, and the keyword argument `output`."""

    @wraps(function)
    def with_output(*args: Any, as_json: bool, **kwargs: Any) -> Any:
        return function(*args, output=Output(as_json=as_json), **kwargs)

    option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
    return option(with_output)  # type: ignore[return-value]


def print_table(rows: Sequence[Row], columns: Sequence[Column], title: str = "") -> None:
    if sys.stdout.isatty():
        _print_rich_table(rows, columns, title)
    else:
        if title:
            print(title)
        for line in plain_lines(rows, columns):
            print(line)


def plain_lines(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    """The heading and the rows, in aligned columns."""
    cells = [[column.heading for column in columns]]
    cells += [[column.text(row) or "-" for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    lines = []
    for line in cells:
        padded = [
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def rich_table(rows: Sequence[Row], columns: Sequence[Column], title: str = "") -> Any:
    """The same table, for rich to print."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, header_style="bold", title=title or None,
        title_justify="left", title_style="bold", show_edge=False,
    )  # fmt: skip
    for column in columns:
        table.add_column(
            column.heading,
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold" if column.wrap else "ellipsis",
        )
    for row in rows:
        cells = []
        for column in columns:
            style = column.style(row.get(column.key)) if callable(column.style) else column.style
            text = column.text(row)
            cells.append(Text(text or "-", style=style if text else "dim"))
        table.add_row(*cells)
    return table


def _print_rich_table(rows: Sequence[Row], columns: Sequence[Column], title: str) -> None:
    from rich.console import Console

    Console(highlight=False).print(rich_table(rows, columns, title))


def as_text(value: Any) -> str:
    """A value as a table shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(as_text(item) for item in value)
    return str(value)
