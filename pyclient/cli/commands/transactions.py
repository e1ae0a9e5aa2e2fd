"""`pyclient transactions`: list, describe, find those that hang, and abort them."""

from typing import Any

import click

from pyclient.cli.exit_codes import refused_values
from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.options.confirmation import confirm, yes_option
from pyclient.cli.options.types import DURATION, PARTITION
from pyclient.cli.output import numbers
from pyclient.cli.output.printing import Column, Output, output_options
from pyclient.clock import SystemClock
from pyclient.error_codes import TransactionalIdNotFoundError
from pyclient.types import TopicPartition

_EPILOG = """\b
Examples:
  pyclient transactions list --state ongoing
  pyclient transactions describe payments-1
  pyclient transactions find-hanging
  pyclient transactions producers orders:0
  pyclient transactions abort orders:0 --start-offset 1234
"""
_STATES = {"ongoing": "yellow", "completecommit": "green", "completeabort": "red"}


def _state_style(state: str) -> str:
    return _STATES.get(state.lower(), "")


@click.group("transactions", epilog=_EPILOG)
def command() -> None:
    """Show transactions, find those that hang, and abort them."""


@command.command("list")
@click.option("--state", multiple=True, metavar="STATE", help="As in ongoing or empty.")
@click.option("--longer-than", type=DURATION, help="Open for longer than this.")
@cluster_options
@output_options
def list_transactions(
    cluster: Cluster, output: Output, state: tuple[str, ...], longer_than: int | None
) -> None:
    """List transactional ids and the states of their transactions."""
    from pyclient.admin import TransactionState

    known = {one.value.lower(): one.value for one in TransactionState}
    states = [known.get(one.lower().replace("-", ""), one) for one in state]
    with cluster.admin() as admin, refused_values():
        found = admin.list_transactions(
            state_filters=states or None, duration_filter_ms=longer_than
        )
    rows = [
        {
            "id": one.transactional_id,
            "state": one.state.value,
            "producer_id": one.producer_id,
            "coordinator": broker,
        }
        for broker, of in found.items()
        for one in of
    ]
    output.rows(
        sorted(rows, key=lambda row: str(row["id"])),
        [Column("id", style="cyan", wrap=True), Column("state", style=_state_style),
         Column("producer_id", right=True), Column("coordinator", right=True)],
        empty="There are no such transactions.",
    )  # fmt: skip


@command.command()
@click.argument("name", metavar="ID")
@cluster_options
@output_options
def describe(cluster: Cluster, output: Output, name: str) -> None:
    """Show the transaction of a transactional id, and its partitions."""
    with cluster.admin() as admin:
        one = admin.describe_transactions([name])[name]
    started = one.transaction_start_time_ms
    facts = {
        "id": name,
        "state": one.state.value,
        "coordinator": one.coordinator_id,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "timeout_ms": one.transaction_timeout_ms,
        "started_ms": started if started >= 0 else None,
        "partitions": [
            {"topic": key.topic, "partition": key.partition} for key in sorted(one.topic_partitions)
        ],
    }
    if output.as_json:
        output.json(facts)
        return
    now_ms = SystemClock().now_ms()
    output.fields(
        {
            "Id": click.style(name, fg="cyan", bold=True),
            "State": one.state.value,
            "Coordinator": one.coordinator_id,
            "Producer": f"{one.producer_id}, epoch {one.producer_epoch}",
            "Timeout": numbers.duration(one.transaction_timeout_ms),
            "Open for": numbers.duration(max(now_ms - started, 0)) if started >= 0 else "-",
            "Partitions": " ".join(
                f"{key.topic}:{key.partition}" for key in sorted(one.topic_partitions)
            )
            or "-",
        }
    )


@command.command()
@click.argument("key", type=PARTITION, metavar="TOPIC:PARTITION")
@cluster_options
@output_options
def producers(cluster: Cluster, output: Output, key: TopicPartition) -> None:
    """Show the producers that a partition remembers, and their open transactions."""
    with cluster.admin() as admin:
        found = admin.describe_producers([key])[key].active_producers
    rows = [_producer_row(one) for one in sorted(found)]
    output.rows(
        rows,
        [Column("producer_id", right=True), Column("epoch", right=True),
         Column("last_sequence", right=True), Column("last_time", show=numbers.time),
         Column("open_since_offset", right=True, style="yellow")],
        empty="The partition remembers no producers.",
    )  # fmt: skip


def _producer_row(one: Any) -> dict[str, Any]:
    start = one.current_transaction_start_offset
    return {
        "producer_id": one.producer_id,
        "epoch": one.producer_epoch,
        "last_sequence": one.last_sequence,
        "last_time": one.last_timestamp,
        "coordinator_epoch": one.coordinator_epoch,
        "open_since_offset": start if start >= 0 else None,
    }


@command.command("find-hanging")
@click.option(
    "--max-timeout",
    type=DURATION,
    default="15m",
    show_default=True,
    help="The brokers' transaction.max.timeout.ms; five minutes are added.",
)
@cluster_options
@output_options
def find_hanging(cluster: Cluster, output: Output, max_timeout: int) -> None:
    """Find transactions that are open for longer than any may be."""
    with cluster.admin() as admin:
        found = admin.find_hanging_transactions(max_transaction_timeout_ms=max_timeout)
    rows = [
        {
            **one,
            "topic_partitions": [f"{key.topic}:{key.partition}" for key in one.topic_partitions],
        }
        for one in found
    ]
    output.rows(
        rows,
        [Column("transactional_id", title="ID", style="cyan"), Column("state"),
         Column("producer_id", right=True), Column("producer_epoch", title="EPOCH", right=True),
         Column("age_ms", title="OPEN FOR", right=True, show=numbers.duration),
         Column("topic_partitions", title="PARTITIONS", wrap=True)],
        empty="No transaction hangs.",
    )  # fmt: skip


@command.command()
@click.argument("key", type=PARTITION, metavar="TOPIC:PARTITION")
@click.option(
    "--start-offset",
    type=click.IntRange(0),
    required=True,
    help="Where it begins; `pyclient transactions producers` shows it.",
)
@yes_option
@cluster_options
@output_options
def abort(
    cluster: Cluster, output: Output, key: TopicPartition, start_offset: int, yes: bool
) -> None:
    """Abort a transaction in one partition: for those that hang, as no coordinator ends them."""
    from pyclient.admin import AbortTransactionSpec

    with cluster.admin() as admin:
        found = [
            one
            for one in admin.describe_producers([key])[key].active_producers
            if one.current_transaction_start_offset == start_offset
        ]
        if not found:
            raise TransactionalIdNotFoundError(
                f"no open transaction of {key.topic}:{key.partition} begins at {start_offset}"
            )
        (one,) = found
        confirm(
            f"Abort the transaction of producer {one.producer_id} in {key.topic}:{key.partition}?",
            yes=yes,
        )
        epoch = one.coordinator_epoch
        admin.abort_transaction(
            AbortTransactionSpec(key, one.producer_id, one.producer_epoch, epoch)
        )
    output.done(
        f"Transaction of producer {one.producer_id} in {key.topic}:{key.partition} aborted.",
        topic=key.topic,
        partition=key.partition,
        producer_id=one.producer_id,
        aborted=True,
    )
