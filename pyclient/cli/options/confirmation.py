"""Asks before something is destroyed."""

import sys
from typing import Final

import click

yes_option: Final = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal; scripts have decided already."""
    if not yes and sys.stdin.isatty() and not click.confirm(question, err=True):
        raise click.Abort
