"""What the load tests share: who runs them, on which broker, and what becomes of the figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pyclient.cli.options.cluster import Cluster

if TYPE_CHECKING:
    from pyclient.perf import Result, Window

Function = TypeVar("Function", bound=Callable[..., Any])


def run_options(function: Function) -> Function:
    """`--client`, `--processes`, `--result` and `--report`."""
    from pyclient.perf.runner import PROCESSES_MAX

    for option in (
        click.option(
            "--report", type=click.Path(path_type=Path),
            help="Write a page with plots here, as HTML.",
        ),
        click.option(
            "--result", type=click.Path(path_type=Path), help="Write the figures here, as JSON."
        ),
        click.option(
            "--processes", type=click.IntRange(1, PROCESSES_MAX), default=1, show_default=True
        ),
    ):  # fmt: skip
        function = option(function)
    return client_options(function)


def client_options(function: Function) -> Function:
    """`--client` and `--kafka-home`."""
    from pyclient.perf.clients import NAMES

    for option in (
        click.option(
            "--kafka-home", envvar="KAFKA_HOME", metavar="DIR",
            help="For --client java: a Kafka download, or a folder of its jars.",
        ),
        click.option(
            "--client", "clients", type=click.Choice(NAMES), multiple=True, default=["pyclient"],
            show_default=True, help="Run the load with this client. May be repeated, to compare.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


@contextmanager
def servers_of(cluster: Cluster) -> Iterator[str]:
    """The servers that the user named, or those of an embedded broker."""
    if cluster.named_servers is not None:
        yield cluster.named_servers
        return
    from pyclient.perf.processes import broker_process

    with broker_process() as servers:
        yield servers


def show_window(verb: str) -> Callable[[Window], None]:
    """Prints Kafka's line for each second."""
    from pyclient.perf import window_line

    def show(window: Window) -> None:
        print(window_line(window, verb), flush=True)

    return show


def conclude(results: Sequence[Result], result: Path | None, report: Path | None) -> None:
    """Print the comparison, write the files.

    Raises:
        KafkaError: records were not delivered.
        KeyboardInterrupt: a run was interrupted.
    """
    from pyclient.errors import KafkaError

    if len(results) > 1:
        from pyclient.perf.result import comparison

        print()
        for line in aligned(comparison(results)):
            print(line)
    if result is not None:
        documents = [each.to_json() for each in results]
        text = json.dumps(documents[0] if len(documents) == 1 else documents)
        result.write_text(text, encoding="utf-8")
    if report is not None:
        from pyclient.perf.report.results import results_page

        report.write_text(results_page("Load test", results), encoding="utf-8")
    for each in results:
        if each.failed:
            raise KafkaError(
                f"{each.failed} of {each.failed + each.records} records were not delivered; "
                f"one of them: {each.first_error or 'not sampled'}"
            )
    if any(each.interrupted for each in results):
        raise KeyboardInterrupt


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table as lines: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *rest = row
        cells = [f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True)]
        yield "  ".join([f"{first:<{widths[0]}}", *cells])
