"""`pyclient users`: users with SCRAM credentials; list, set, delete."""

import sys
from typing import Any, Final

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.options.confirmation import confirm, yes_option
from pyclient.cli.output.printing import Column, Output, output_options
from pyclient.errors import KafkaError

_EPILOG = """\b
Examples:
  pyclient users list
  pyclient users set alice
  echo 'secret' | pyclient users set alice --mechanism scram-sha-256
  pyclient users delete alice
\b
The password is asked for, or is the first line of standard input. As an argument
it would show in the list of processes and in the shell's history.
"""
_MECHANISMS: Final = click.Choice(["scram-sha-256", "scram-sha-512"], case_sensitive=False)


@click.group("users", epilog=_EPILOG)
def command() -> None:
    """Show and change the passwords of users (SCRAM)."""


@command.command("list")
@click.argument("names", nargs=-1, metavar="[USER...]")
@cluster_options
@output_options
def list_users(cluster: Cluster, output: Output, names: tuple[str, ...]) -> None:
    """List users and the kinds of their passwords; by default all."""
    from pyclient.error_codes import ResourceNotFoundError

    with cluster.admin() as admin:
        found = admin.describe_user_scram_credentials(names or None)
    rows = [
        {
            "user": user,
            "mechanism": _mechanism_name(info.mechanism),
            "iterations": info.iterations,
        }
        for user, of in sorted(found.items())
        for info in of.credential_infos
    ]
    output.rows(
        rows,
        [Column("user", style="cyan"), Column("mechanism"), Column("iterations", right=True)],
        empty="" if names else "There are no users with SCRAM credentials.",
    )
    for user, of in found.items():
        if of.error is not None:
            raise ResourceNotFoundError(f"user {user!r}: {of.error}")


@command.command("set")
@click.argument("name", metavar="USER")
@click.option("-m", "--mechanism", type=_MECHANISMS, default="scram-sha-512", show_default=True)
@click.option("--iterations", type=click.IntRange(4096, 16384), default=4096, show_default=True)
@cluster_options
@output_options
def set_password(
    cluster: Cluster, output: Output, name: str, mechanism: str, iterations: int
) -> None:
    """Create a user, or change the password."""
    from pyclient.admin import UserScramCredentialUpsertion

    if sys.stdin.isatty():
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise click.UsageError("The password is empty: give it on standard input.")
    change = UserScramCredentialUpsertion(name, mechanism, password, iterations)
    _alter(cluster, name, change)
    output.done(f"Password of {name} set ({mechanism}).", user=name, mechanism=mechanism)


@command.command()
@click.argument("name", metavar="USER")
@click.option("-m", "--mechanism", type=_MECHANISMS, help="Only this one.  [all]")
@yes_option
@cluster_options
@output_options
def delete(cluster: Cluster, output: Output, name: str, mechanism: str | None, yes: bool) -> None:
    """Delete the passwords of a user."""
    from pyclient.admin import UserScramCredentialDeletion
    from pyclient.error_codes import ResourceNotFoundError

    confirm(f"Delete the user {name}?", yes=yes)
    with cluster.admin() as admin:
        found = admin.describe_user_scram_credentials([name])[name]
    kinds = [_mechanism_name(info.mechanism) for info in found.credential_infos]
    wanted = [kind for kind in kinds if mechanism is None or kind == mechanism.lower()]
    if not wanted:
        raise ResourceNotFoundError(f"user {name!r} has no {mechanism or 'SCRAM credentials'}")
    for kind in wanted:  # brokers take one change of a user at a time
        _alter(cluster, name, UserScramCredentialDeletion(name, kind))
    output.done(f"User {name}: {', '.join(wanted)} deleted.", user=name, deleted=wanted)


def _mechanism_name(mechanism: Any) -> str:
    return str(mechanism.name).lower().replace("_", "-")


def _alter(cluster: Cluster, name: str, change: Any) -> None:
    with cluster.admin() as admin:
        text = admin.alter_user_scram_credentials([change])[name]
    if text is not None:
        raise KafkaError(text)
