"""`pyclient perf`, and `pyclient perf report`."""

from pathlib import Path

import click

from pyclient.cli.perf.consume import consume
from pyclient.cli.perf.produce import produce
from pyclient.cli.perf.verify import verify


@click.group("perf")
def command() -> None:
    """Measure how fast records can be sent or read.

    Without --bootstrap-server, an embedded broker is started for the run.
    """


command.add_command(produce)
command.add_command(consume)
command.add_command(verify)


@command.command("report")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
def report_command(results: tuple[Path, ...], output: Path) -> None:
    """Compare results (of --result) on one page with plots."""
    import json
    from dataclasses import replace

    from pyclient.errors import KafkaConfigurationError
    from pyclient.perf import Result
    from pyclient.perf.report.results import results_page

    runs = []
    for path in results:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise KafkaConfigurationError(f"{path} is not JSON: {error}") from error
        for each in document if isinstance(document, list) else [document]:
            run = Result.from_json(each)
            name = path.stem if not isinstance(document, list) else f"{path.stem}: {run.name}"
            runs.append(replace(run, name=name))
    output.write_text(results_page("Load tests compared", runs), encoding="utf-8")
