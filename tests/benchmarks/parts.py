"""The parts of a benchmark: the options that choose them, and the rows that they print."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


def parts_parser(
    description: str | None, names: Iterable[str], option: str = "--part"
) -> argparse.ArgumentParser:
    """A parser with an option to run single parts, and `--list`, which names them and exits."""
    parser = argparse.ArgumentParser(description=description)
    names = list(names)
    parser.add_argument(option, action="append", choices=names, help="measure only this one")
    parser.add_argument("--list", action=_List, nargs=0, const=names, help="name them and exit")
    return parser


class _List(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(self.const, list)
        print(*self.const, sep="\n")
        parser.exit()


class Row(NamedTuple):
    """A line of a table: both numbers in the unit that `what` or the heading names."""

    what: str
    ours: float
    theirs: float
    ratio: float
    bar: float

    @property
    def passed(self) -> bool:
        return self.ratio >= self.bar


def print_heading(title: str, peer: str) -> None:
    print(f"\n{title}\n{'':36}  {'ours':>9}  {peer:>9}  {'ratio':>7}  {'bar':>6}")


def print_rows(rows: Iterable[Row]) -> bool:
    """Print rows as they come; whether every bar was reached."""
    passed = True
    for row in rows:
        print(
            f"{row.what:36}  {row.ours:9.2f}  {row.theirs:9.2f}  {row.ratio:6.2f}x  "
            f"{row.bar:5.1f}x{'' if row.passed else '  MISSED'}",
            flush=True,
        )
        passed &= row.passed
    return passed
