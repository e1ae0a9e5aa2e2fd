"""`pyclient acls`: who may do what; list, create, delete."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.options.confirmation import confirm, yes_option
from pyclient.cli.output.printing import Column, Output, output_options
from pyclient.error_codes import NoError

_EPILOG = """\b
Examples:
  pyclient acls list --topic orders
  pyclient acls create --topic orders --allow alice --operation read --operation describe
  pyclient acls create --topic audit- --prefixed --deny '*' --operation delete
  pyclient acls delete --group billing --principal alice
\b
A principal without a type is a user: alice is User:alice. * is everybody.
"""
_OPERATIONS: Final = ("all", "read", "write", "create", "delete", "alter", "describe",
                      "cluster-action", "describe-configs", "alter-configs", "idempotent-write",
                      "create-tokens", "describe-tokens")  # fmt: skip
_COLUMNS: Final = [
    Column("principal", style="cyan"),
    Column("permission", style=lambda text: "red" if text == "deny" else "green"),
    Column("operation"),
    Column("resource"),
    Column("name", wrap=True),
    Column("pattern"),
    Column("host"),
]
Function = TypeVar("Function", bound=Callable[..., Any])


def _resource_options(function: Function) -> Function:
    for option in (
        click.option("--host", metavar="ADDRESS", help="The client's address.  [any]"),
        click.option("--delegation-token", metavar="NAME"),
        click.option("--transactional-id", metavar="NAME"),
        click.option("--cluster", "on_cluster", is_flag=True, help="The cluster itself."),
        click.option("--group", metavar="NAME"),
        click.option("--topic", metavar="NAME", help="* stands for all, as for groups."),
    ):
        function = option(function)
    return function


@click.group("acls", epilog=_EPILOG)
def command() -> None:
    """Show and change who may do what."""


@command.command("list")
@_resource_options
@click.option("--match", is_flag=True, help="All that apply to this name: prefixes and *, too.")
@click.option("--principal", help="As in alice or User:alice.")
@click.option("--operation", type=click.Choice(_OPERATIONS), metavar="OPERATION")
@cluster_options
@output_options
def list_acls(cluster: Cluster, output: Output, **given: Any) -> None:
    """List entries; by default all."""
    with cluster.admin() as admin:
        found, _ = admin.describe_acls(_filter(**given))
    output.rows(_rows(found), _COLUMNS, empty="There are no such entries.")


@command.command()
@_resource_options
@click.option("--prefixed", is_flag=True, help="All resources whose names begin so.")
@click.option("--allow", multiple=True, metavar="PRINCIPAL", help="As in alice or User:alice.")
@click.option("--deny", multiple=True, metavar="PRINCIPAL", help="Stronger than --allow.")
@click.option(
    "-o",
    "--operation",
    "operations",
    type=click.Choice(_OPERATIONS),
    multiple=True,
    required=True,
    metavar="OPERATION",
    help=f"One of {', '.join(_OPERATIONS)}.",
)
@cluster_options
@output_options
def create(
    cluster: Cluster,
    output: Output,
    prefixed: bool,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    operations: tuple[str, ...],
    host: str | None,
    **resource: Any,
) -> None:
    """Allow or deny operations; an entry that exists stays."""
    from pyclient.admin import ACL, ACLPermissionType, ACLResourcePatternType, ResourcePattern

    kind, name = _resource(resource)
    if name is None or not (allow or deny):
        raise click.UsageError("Give a resource, as in --topic NAME, and --allow or --deny.")
    pattern_type = ACLResourcePatternType.PREFIXED if prefixed else ACLResourcePatternType.LITERAL
    entries = [
        ACL(
            _principal(who),
            host or "*",
            _operation(operation),
            permission,
            ResourcePattern(kind, name, pattern_type),
        )
        for permission, principals in (
            (ACLPermissionType.ALLOW, allow),
            (ACLPermissionType.DENY, deny),
        )
        for who in principals
        for operation in operations
    ]
    with cluster.admin() as admin:
        created = admin.create_acls(entries)
    if created.succeeded or output.as_json:
        output.rows(_rows(created.succeeded), _COLUMNS)
    for error in created.errors.values():
        raise error


@command.command()
@_resource_options
@click.option("--match", is_flag=True, help="All that apply to this name: prefixes and *, too.")
@click.option("--principal", help="As in alice or User:alice.")
@click.option("--operation", type=click.Choice(_OPERATIONS), metavar="OPERATION")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@yes_option
@cluster_options
@output_options
def delete(cluster: Cluster, output: Output, dry_run: bool, yes: bool, **given: Any) -> None:
    """Delete the entries that match."""
    wanted = _filter(**given)
    with cluster.admin() as admin:
        found, _ = admin.describe_acls(wanted)
        if not found or dry_run:
            output.rows(_rows(found), _COLUMNS, empty="There are no such entries.")
            return
        confirm(f"Delete {len(found)} entries?", yes=yes)
        (deleted,) = admin.delete_acls([wanted])
    output.rows(_rows(deleted.matching_acls), _COLUMNS)
    if deleted.error is not NoError:
        raise deleted.error("an entry was not deleted")
    if not output.as_json:
        output.note(f"{len(deleted.matching_acls)} entries deleted.")


def _filter(
    principal: str | None, operation: str | None, host: str | None, match: bool, **resource: Any
) -> Any:
    from pyclient.admin import (
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        ResourcePatternFilter,
    )

    kind, name = _resource(resource)
    pattern_type = ACLResourcePatternType.MATCH if match else ACLResourcePatternType.ANY
    return ACLFilter(
        None if principal is None else _principal(principal),
        host,
        ACLOperation.ANY if operation is None else _operation(operation),
        ACLPermissionType.ANY,
        ResourcePatternFilter(kind, name, pattern_type),
    )


def _resource(given: dict[str, Any]) -> tuple[Any, str | None]:
    """The type and the name of the one resource that is given; of none, any."""
    from pyclient.admin import ResourceType

    on_cluster = given.pop("on_cluster")
    named = [(ResourceType[kind.upper()], name) for kind, name in given.items() if name is not None]
    if on_cluster:
        named.append((ResourceType.CLUSTER, "kafka-cluster"))
    if len(named) > 1:
        raise click.UsageError("Give one resource at a time.")
    return named[0] if named else (ResourceType.ANY, None)


def _principal(text: str) -> str:
    return text if ":" in text else f"User:{text}"


def _operation(text: str) -> Any:
    from pyclient.admin import ACLOperation

    return ACLOperation[text.upper().replace("-", "_")]


def _rows(entries: Iterable[Any]) -> list[dict[str, Any]]:
    def words(one: Any) -> str:
        return str(one.name).lower().replace("_", "-")

    rows = [
        {
            "principal": one.principal,
            "permission": words(one.permission_type),
            "operation": words(one.operation),
            "resource": words(one.resource_pattern.resource_type),
            "name": one.resource_pattern.resource_name,
            "pattern": words(one.resource_pattern.pattern_type),
            "host": one.host,
        }
        for one in entries
    ]
    return sorted(rows, key=lambda row: tuple(str(value) for value in row.values()))
