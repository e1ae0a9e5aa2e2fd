"""`pyclient groups`: list, describe with lag and members, move and delete offsets, watch."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from threading import Event
from typing import Any

import click

from pyclient.cli.commands.topics import partitions_of
from pyclient.cli.exit_codes import refused_values
from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.options.confirmation import confirm, yes_option
from pyclient.cli.options.types import DURATION, TIMESTAMP, TOPIC_PARTITIONS
from pyclient.cli.output import numbers
from pyclient.cli.output.printing import Column, Output, output_options, rich_table
from pyclient.error_codes import GroupIdNotFoundError, NoError
from pyclient.errors import KafkaConfigurationError, KafkaError
from pyclient.types import TopicPartition

_EPILOG = """\b
Examples:
  pyclient groups list --state empty
  pyclient groups describe billing
  pyclient groups describe billing --members
  pyclient groups watch billing
  pyclient groups reset-offsets billing --topic orders --to-earliest --dry-run
  pyclient groups reset-offsets billing --topic orders:0,2 --to-datetime -2h
  pyclient groups delete billing
"""
_STATES = {
    "stable": "green",
    "empty": "yellow",
    "dead": "red",
}


def _state_style(state: str | None) -> str:
    return _STATES.get((state or "").lower(), "magenta")


@click.group("groups", epilog=_EPILOG)
def command() -> None:
    """Show groups, how far they are behind, and move their offsets."""


@command.command("list")
@click.option("--state", multiple=True, metavar="STATE", help="As in stable or empty.")
@click.option("--type", "kind", multiple=True, metavar="TYPE", help="As in classic or consumer.")
@cluster_options
@output_options
def list_groups(
    cluster: Cluster, output: Output, state: tuple[str, ...], kind: tuple[str, ...]
) -> None:
    """List groups with their states."""
    with cluster.admin() as admin, refused_values():
        found = admin.list_groups(states_filter=state or None, types_filter=kind or None)
    rows = [
        {
            "group": one.group_id,
            "state": one.group_state,
            "type": one.group_type,
            "protocol": one.protocol_type,
        }
        for one in sorted(found, key=lambda one: one.group_id)
    ]
    output.rows(
        rows,
        [Column("group", style="cyan", wrap=True), Column("state", style=_state_style),
         Column("type"), Column("protocol")],
        empty="There are no groups.",
    )  # fmt: skip


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@click.option("-m", "--members", is_flag=True, help="The members rather than the offsets.")
@cluster_options
@output_options
def describe(cluster: Cluster, output: Output, names: tuple[str, ...], members: bool) -> None:
    """Show what groups have read, how far they are behind, and who reads what."""
    with cluster.admin() as admin:
        groups = describe_groups(admin, names)
    if output.as_json:
        output.json(groups)
        return
    for index, group in enumerate(groups):
        if index:
            click.echo()
        output.fields(_summary(group))
        click.echo()
        if members:
            output.rows(group["members"], _MEMBER_COLUMNS, empty="It has no members.")
        else:
            output.rows(group["partitions"], _LAG_COLUMNS, empty="It has committed no offsets.")


def describe_groups(admin: Any, names: Iterable[str]) -> list[dict[str, Any]]:
    """Groups with their members and their lag by partition.

    Raises:
        GroupIdNotFoundError: one does not exist.
    """
    described = admin.describe_groups(names)
    return [_group(admin, name, one) for name, one in described.items()]


def _group(admin: Any, name: str, described: Any) -> dict[str, Any]:
    state, kind = described.group_state, "classic"
    if described.error is not None or state == "Dead":
        # Groups of the new protocol are not described by this call, but they are listed.
        listed = [one for one in admin.list_groups() if one.group_id == name]
        if not listed:
            raise GroupIdNotFoundError(f"group {name!r} does not exist")
        state, kind = listed[0].group_state, listed[0].group_type
    members = [
        {
            "member": one.member_id,
            "instance": one.group_instance_id,
            "client": one.client_id,
            "host": one.client_host.lstrip("/"),
            "partitions": [
                {"topic": key.topic, "partition": key.partition} for key in _assigned(one)
            ],
        }
        for one in described.members
    ]
    partitions = _lag_rows(admin, name, described.members)
    return {
        "group": name,
        "state": state,
        "type": kind,
        "assignor": described.protocol_data or None,
        "lag": sum(row["lag"] or 0 for row in partitions),
        "members": members,
        "partitions": partitions,
    }


def _assigned(member: Any) -> list[TopicPartition]:
    assignment = member.member_assignment
    return [] if isinstance(assignment, bytes) else sorted(assignment.partitions())


def _lag_rows(admin: Any, name: str, members: list[Any]) -> list[dict[str, Any]]:
    """The partitions that the group has committed offsets of, or that a member reads."""
    from pyclient.admin import OffsetSpec

    lags = admin.lag(name)
    owners = {key: one for one in members for key in _assigned(one)}
    unread = [key for key in owners if key not in lags]
    ends = admin.list_partition_offsets(dict.fromkeys(unread, OffsetSpec.LATEST)) if unread else {}
    rows = []
    for key in sorted({*lags, *owners}):
        row: dict[str, Any] = {"topic": key.topic, "partition": key.partition}
        if key in lags:
            row |= lags[key]
        else:
            row |= {"committed": None, "end": ends[key].offset, "lag": None,
                    "time_lag_ms": None, "error": None}  # fmt: skip
        owner = owners.get(key)
        row["client"] = None if owner is None else owner.client_id
        row["host"] = None if owner is None else owner.client_host.lstrip("/")
        row["member"] = None if owner is None else owner.member_id
        rows.append(row)
    return rows


def _lag_style(lag: int | None) -> str:
    return "" if lag is None else "red" if lag < 0 else "yellow" if lag else "green"


_LAG_COLUMNS = [
    Column("topic", style="cyan"),
    Column("partition", right=True),
    Column("committed", right=True),
    Column("end", right=True),
    Column("lag", right=True, style=_lag_style),
    Column("time_lag_ms", title="BEHIND", right=True, show=numbers.duration),
    Column("client"),
    Column("host"),
]
_MEMBER_COLUMNS = [
    Column("client", style="cyan"),
    Column("host"),
    Column("member", wrap=True, style="dim"),
    Column("instance"),
    Column(
        "partitions",
        wrap=True,
        show=lambda keys: " ".join(f"{one['topic']}:{one['partition']}" for one in keys),
    ),
]


def _summary(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "Group": click.style(group["group"], fg="cyan", bold=True),
        "State": click.style(group["state"], fg=_state_style(group["state"])),
        "Type": group["type"],
        "Assignor": group["assignor"] or "-",
        "Members": len(group["members"]),
        "Lag": numbers.number(group["lag"]),
    }


@command.command()
@click.argument("name", metavar="GROUP")
@click.option(
    "-i", "--interval", type=DURATION, default="2s", show_default=True, help="Between two looks."
)
@click.option("-n", "--count", type=click.IntRange(1), help="Stop after as many looks.")
@cluster_options
@output_options
def watch(cluster: Cluster, output: Output, name: str, interval: int, count: int | None) -> None:
    """Show a group's lag again and again (Ctrl-C stops); with --json, a line for each look."""
    with cluster.admin() as admin:
        looks = _looks(admin, name, interval, count)
        if sys.stdout.isatty() and not output.as_json:
            _show_live(looks)
            return
        for group in looks:
            if output.as_json:
                output.json(group)
            else:
                output.fields(_summary(group))
                output.rows(group["partitions"], _LAG_COLUMNS)
            sys.stdout.flush()


def _looks(admin: Any, name: str, interval_ms: int, count: int | None) -> Iterator[dict[str, Any]]:
    pause = Event()  # never set: to wait, and to be interrupted
    looked = 0
    while True:
        yield describe_groups(admin, [name])[0]
        looked += 1
        if looked == count:
            return
        pause.wait(interval_ms / 1000)


def _show_live(looks: Iterator[dict[str, Any]]) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(highlight=False), auto_refresh=False) as live:
        for group in looks:
            line = Text.assemble(
                (group["group"], "bold cyan"),
                "  ",
                (group["state"], _state_style(group["state"])),
                f"  {len(group['members'])} members  lag {numbers.number(group['lag'])}",
            )
            table = rich_table(group["partitions"], _LAG_COLUMNS)
            live.update(Group(line, Text(), table), refresh=True)


@command.command("reset-offsets")
@click.argument("name", metavar="GROUP")
@click.option(
    "-t",
    "--topic",
    "topics",
    type=TOPIC_PARTITIONS,
    multiple=True,
    help="Which, as in orders or orders:0,3-5. Default: all that it has committed.",
)
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="Behind the last record.")
@click.option("--to-offset", type=click.IntRange(0), help="To this offset.")
@click.option("--to-datetime", type=TIMESTAMP, help="To the first record at or after a time.")
@click.option("--by-duration", type=DURATION, help="To the first record of the last 2h, say.")
@click.option("--shift-by", type=int, help="That many records on; back if it is negative.")
@click.option("--dry-run", is_flag=True, help="Only show where the offsets would be moved.")
@yes_option
@cluster_options
@output_options
def reset_offsets(
    cluster: Cluster,
    output: Output,
    name: str,
    topics: tuple[tuple[str, list[int] | None], ...],
    dry_run: bool,
    yes: bool,
    **targets: Any,
) -> None:
    """Move the offsets of a group that has no members."""
    target = _target(targets)
    with cluster.admin() as admin, refused_values():
        specs = dict.fromkeys(_selected(admin, topics), target) if topics else target
        committed = admin.list_group_offsets([name])[name]
        plan = admin.reset_group_offsets(name, specs, dry_run=True)
        if not plan:
            raise GroupIdNotFoundError(
                f"group {name!r} has no committed offsets; name the topics with --topic"
            )
        rows = [
            {
                "topic": key.topic,
                "partition": key.partition,
                "from": committed[key].offset if key in committed else None,
                "to": plan[key].offset,
            }
            for key in sorted(plan)
        ]
        columns = [Column("topic", style="cyan"), Column("partition", right=True),
                   Column("from", right=True), Column("to", right=True, style="bold")]  # fmt: skip
        if not output.as_json:
            output.rows(rows, columns)
        if dry_run:
            if output.as_json:
                output.json(rows)
            else:
                output.note("Nothing was changed: this was a dry run.")
            return
        confirm(f"Move these offsets of {name}?", yes=yes)
        from pyclient.types import OffsetAndMetadata

        wanted = {
            key: OffsetAndMetadata(
                plan[key].offset, committed[key].metadata if key in committed else ""
            )
            for key in plan
        }
        outcome = admin.alter_group_offsets(name, wanted)
    _raise_first(outcome, f"group {name!r}")
    if output.as_json:
        output.json(rows)
    else:
        output.note(f"{len(rows)} offsets of {name} moved.")


def _target(targets: dict[str, Any]) -> Any:
    from pyclient.admin import OffsetShift, OffsetSpec, OffsetTimestamp

    given = [key for key, value in targets.items() if value is not None and value is not False]
    if len(given) != 1:
        options = ", ".join(f"--{key.replace('_', '-')}" for key in targets)
        raise click.UsageError(f"Give exactly one of {options}.")
    value = targets[given[0]]
    meanings: dict[str, Callable[[], Any]] = {
        "to_earliest": lambda: OffsetSpec.EARLIEST,
        "to_latest": lambda: OffsetSpec.LATEST,
        "to_offset": lambda: value,
        "to_datetime": lambda: OffsetTimestamp(value),
        "by_duration": lambda: timedelta(milliseconds=value),
        "shift_by": lambda: OffsetShift(value),
    }
    return meanings[given[0]]()


def _selected(admin: Any, topics: Iterable[tuple[str, list[int] | None]]) -> list[TopicPartition]:
    keys = []
    for topic, wanted in topics:
        present = partitions_of(admin, topic)
        if wanted is None:
            keys += present
            continue
        keys += [TopicPartition(topic, one) for one in wanted]
        absent = next((key for key in keys if key.topic == topic and key not in present), None)
        if absent is not None:
            raise KafkaConfigurationError(f"topic {topic!r} has no partition {absent.partition}")
    return keys


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@yes_option
@cluster_options
@output_options
def delete(cluster: Cluster, output: Output, names: tuple[str, ...], yes: bool) -> None:
    """Delete groups that have no members, with their offsets."""
    confirm(f"Delete {', '.join(names)} and the offsets?", yes=yes)
    with cluster.admin() as admin:
        outcome = dict(admin.delete_consumer_groups(names))
    rows = [
        {"group": name, "result": "deleted" if outcome[name] is NoError else "failed"}
        for name in names
    ]
    failed = any(kind is not NoError for kind in outcome.values())
    if output.as_json or len(rows) > 1 or not failed:
        style = {"failed": "red"}
        output.rows(
            rows,
            [Column("group", style="cyan"),
             Column("result", style=lambda result: style.get(result, "green"))],
        )  # fmt: skip
    _raise_first(outcome, "group {!r} cannot be deleted")


@command.command("delete-offsets")
@click.argument("name", metavar="GROUP")
@click.option(
    "-t",
    "--topic",
    "topics",
    type=TOPIC_PARTITIONS,
    multiple=True,
    required=True,
    help="Which, as in orders or orders:0,3-5.",
)
@yes_option
@cluster_options
@output_options
def delete_offsets(
    cluster: Cluster,
    output: Output,
    name: str,
    topics: tuple[tuple[str, list[int] | None], ...],
    yes: bool,
) -> None:
    """Forget what a group has read of topics that no member subscribes to."""
    confirm(f"Delete offsets of {name}?", yes=yes)
    with cluster.admin() as admin:
        keys = [
            key
            for key in admin.list_group_offsets([name])[name]
            if any(
                key.topic == topic and (of is None or key.partition in of) for topic, of in topics
            )
        ]
        if not keys:
            raise GroupIdNotFoundError(f"group {name!r} has no offsets of these partitions")
        outcome = admin.delete_group_offsets(name, keys)
    _raise_first(outcome, f"group {name!r}")
    rows = [{"topic": key.topic, "partition": key.partition} for key in sorted(keys)]
    output.rows(rows, [Column("topic", style="cyan"), Column("partition", right=True)])
    if not output.as_json:
        output.note(f"{len(rows)} offsets of {name} deleted.")


def _raise_first(outcome: Mapping[Any, type[KafkaError]], text: str) -> None:
    for key, kind in outcome.items():
        if kind is not NoError:
            where = f" {key.topic}-{key.partition}" if isinstance(key, TopicPartition) else ""
            raise kind(text.format(key) + where)
