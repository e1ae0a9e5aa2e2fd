"""`pyclient quotas`: limits of users, client ids and addresses; list, alter."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.options.types import KEY_VALUE
from pyclient.cli.output.printing import Column, Output, output_options
from pyclient.errors import KafkaError

_EPILOG = """\b
Examples:
  pyclient quotas list
  pyclient quotas alter --user alice --set producer_byte_rate=1048576
  pyclient quotas alter --client-defaults --set request_percentage=50
  pyclient quotas alter --user alice --delete producer_byte_rate
\b
Quotas: producer_byte_rate, consumer_byte_rate (bytes per second), request_percentage,
controller_mutation_rate; for an address connection_creation_rate.
"""
_KINDS: Final = {"user": "user", "client": "client-id", "ip": "ip"}
Function = TypeVar("Function", bound=Callable[..., Any])


def _entity_options(function: Function) -> Function:
    for option in (
        click.option("--ip-defaults", is_flag=True, help="Addresses without their own."),
        click.option("--ip", metavar="ADDRESS"),
        click.option("--client-defaults", is_flag=True, help="Client ids without their own."),
        click.option("--client-id", "client", metavar="NAME"),
        click.option("--user-defaults", is_flag=True, help="Users without their own."),
        click.option("--user", metavar="NAME"),
    ):
        function = option(function)
    return function


def _entity(given: dict[str, Any]) -> dict[str, str | None]:
    entity: dict[str, str | None] = {}
    for option, kind in _KINDS.items():
        if given[option] is not None and given[f"{option}_defaults"]:
            raise click.UsageError(f"Give a name or --{option}-defaults, but not both.")
        if given[option] is not None or given[f"{option}_defaults"]:
            entity[kind] = given[option]
    return entity


@click.group("quotas", epilog=_EPILOG)
def command() -> None:
    """Show and change how much users and clients may do."""


@command.command("list")
@_entity_options
@cluster_options
@output_options
def list_quotas(cluster: Cluster, output: Output, **given: Any) -> None:
    """List quotas; by default all that were set."""
    with cluster.admin() as admin:
        found = admin.describe_client_quotas(_entity(given) or None)
    rows = [
        {
            **{kind: one.entity.get(kind, "") for kind in _KINDS.values()},
            "quota": name,
            "value": value,
        }
        for one in found
        for name, value in sorted(one.quotas.items())
    ]
    shown = [kind for kind in _KINDS.values() if any(row[kind] != "" for row in rows)]
    output.rows(
        [
            {key: "<default>" if value is None else value for key, value in row.items()}
            for row in rows
        ]
        if not output.as_json
        else [{"entity": one.entity, "quotas": one.quotas} for one in found],
        [*(Column(kind, title=kind.upper(), style="cyan") for kind in shown), Column("quota"),
         Column("value", right=True, show=lambda value: f"{value:,.15g}")],
        empty="There are no quotas.",
    )  # fmt: skip


@command.command()
@_entity_options
@click.option("-s", "--set", "values", type=KEY_VALUE, multiple=True, help="Set a quota.")
@click.option("-d", "--delete", "deleted", multiple=True, metavar="KEY", help="Remove a quota.")
@click.option("--dry-run", is_flag=True, help="Only check whether it could be done.")
@cluster_options
@output_options
def alter(
    cluster: Cluster,
    output: Output,
    values: tuple[tuple[str, str], ...],
    deleted: tuple[str, ...],
    dry_run: bool,
    **given: Any,
) -> None:
    """Set and remove quotas of a user, a client id, both together, or an address."""
    from pyclient.admin import ClientQuotaAlteration

    entity = _entity(given)
    if not entity or not (values or deleted):
        raise click.UsageError("Give whom, as in --user NAME, and --set or --delete.")
    changes: dict[str, float | None] = dict.fromkeys(deleted)
    for name, text in values:
        try:
            changes[name] = float(text)
        except ValueError:
            raise click.UsageError(f"{name}={text} is not a number.") from None
    with cluster.admin() as admin:
        (outcome,) = admin.alter_client_quotas(
            [ClientQuotaAlteration(entity, changes)], validate_only=dry_run
        )
    if outcome.error is not None:
        raise KafkaError(outcome.error)
    whom = ", ".join(
        f"the default {kind}" if name is None else f"{kind} {name}" for kind, name in entity.items()
    )
    verb = "could be altered" if dry_run else "altered"
    output.done(f"Quotas of {whom} {verb}.", entity=entity, altered=not dry_run)
