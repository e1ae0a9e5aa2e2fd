"""`pyclient configs`: the options of topics, brokers and groups."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from pyclient.cli.exit_codes import refused_values
from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.options.types import KEY_VALUE
from pyclient.cli.output.printing import Column, Output, output_options
from pyclient.errors import KafkaError

_EPILOG = """\b
Examples:
  pyclient configs describe topic orders
  pyclient configs describe broker 1 --all
  pyclient configs alter topic orders --set retention.ms=3600000
  pyclient configs alter topic orders --delete retention.ms
"""
_KINDS = click.Choice(["topic", "broker", "broker-logger", "group", "client-metrics"])


@click.group("configs", epilog=_EPILOG)
def command() -> None:
    """Show and change the options of topics, brokers and groups."""


@command.command()
@click.argument("kind", type=_KINDS, metavar="KIND")
@click.argument("name")
@click.option("-a", "--all", "show_all", is_flag=True, help="Defaults, too.")
@cluster_options
@output_options
def describe(cluster: Cluster, output: Output, kind: str, name: str, show_all: bool) -> None:
    """Show options; KIND is topic, broker, broker-logger, group or client-metrics."""
    from pyclient.admin import ConfigResource

    resource = ConfigResource(_kind(kind), name)
    with cluster.admin() as admin:
        found = admin.describe_configs([resource], config_filter="all" if show_all else "modified")
    rows = [
        {
            "name": key,
            "value": "[hidden]" if entry["is_sensitive"] else entry["value"],
            "source": str(entry["config_source"]).lower().replace("_config", "").replace("_", " "),
            "read_only": entry["read_only"],
        }
        for by_name in found.values()
        for entries in by_name.values()
        for key, entry in sorted(entries.items())
    ]
    output.rows(
        rows,
        [Column("name", style="cyan"), Column("value", wrap=True), Column("source", style="dim")],
        empty=f"{kind} {name} has defaults only. Hint: --all shows them",
    )


@command.command()
@click.argument("kind", type=_KINDS, metavar="KIND")
@click.argument("name")
@click.option("-s", "--set", "given", type=KEY_VALUE, multiple=True, help="Set an option.")
@click.option("-d", "--delete", "deleted", multiple=True, metavar="KEY", help="Back to default.")
@click.option("--dry-run", is_flag=True, help="Only check whether it could be done.")
@cluster_options
@output_options
def alter(
    cluster: Cluster,
    output: Output,
    kind: str,
    name: str,
    given: tuple[tuple[str, str], ...],
    deleted: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Set and reset options."""
    if not given and not deleted:
        raise click.UsageError("Give --set or --delete.")
    with cluster.admin() as admin:
        change(admin, _kind(kind), name, dict(given), deleted, dry_run=dry_run)
    verb = "could be altered" if dry_run else "altered"
    output.done(f"{kind} {name} {verb}.", kind=kind, name=name, altered=not dry_run)


def change(
    admin: Any,
    kind: str,
    name: str,
    given: Mapping[str, str],
    deleted: Iterable[str],
    *,
    dry_run: bool,
) -> None:
    """Set and reset options of one resource.

    Raises:
        KafkaError: the change was refused; says why.
    """
    from pyclient.admin import ConfigResource

    changes: dict[str, Any] = {key: ("set", value) for key, value in given.items()}
    changes.update(dict.fromkeys(deleted, ("delete", None)))
    with refused_values():
        outcome = admin.alter_configs([ConfigResource(kind, name, changes)], validate_only=dry_run)
    for results in outcome.values():
        for text in results.values():
            if text != "OK":
                raise KafkaError(f"{name}: {text}")


def _kind(kind: str) -> str:
    return kind.upper().replace("-", "_")
