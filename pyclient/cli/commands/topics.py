"""`pyclient topics`: list, create, describe, alter and delete topics; offsets by time."""

from typing import Any

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.options.confirmation import confirm, yes_option
from pyclient.cli.options.types import KEY_VALUE, TIMESTAMP
from pyclient.cli.output import numbers
from pyclient.cli.output.printing import Column, Output, output_options
from pyclient.errors import KafkaConfigurationError, for_code
from pyclient.types import TopicPartition

_EPILOG = """\b
Examples:
  pyclient topics list
  pyclient topics create orders --partitions 6 --topic-config retention.ms=3600000
  pyclient topics describe orders --json
  pyclient topics offsets orders --time -2h
  pyclient topics delete orders
"""


@click.group("topics", epilog=_EPILOG)
def command() -> None:
    """List, create, describe, alter and delete topics."""


@command.command("list")
@click.option("--internal", is_flag=True, help="Show Kafka's internal topics, too.")
@cluster_options
@output_options
def list_topics(cluster: Cluster, output: Output, internal: bool) -> None:
    """List topics with their partitions and replicas."""
    with cluster.admin() as admin:
        topics = admin.describe_topics()
    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replicas": max((len(one.replica_nodes) for one in topic.partitions), default=0),
            "internal": topic.is_internal,
        }
        for topic in sorted(topics, key=lambda one: one.name or "")
        if internal or not topic.is_internal
    ]
    columns = [Column("topic", style="cyan", wrap=True), Column("partitions", right=True),
               Column("replicas", right=True)]  # fmt: skip
    if internal:
        columns.append(Column("internal"))
    output.rows(rows, columns, empty="There are no topics.")


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("-p", "--partitions", type=click.IntRange(1), help="Default: the brokers'.")
@click.option("-r", "--replication-factor", type=click.IntRange(1), help="Default: the brokers'.")
@click.option(
    "-c", "--topic-config", type=KEY_VALUE, multiple=True, help="As in retention.ms=3600000."
)
@click.option("--if-not-exists", is_flag=True, help="A topic that exists is no error.")
@click.option("--dry-run", is_flag=True, help="Only check whether they could be created.")
@cluster_options
@output_options
def create(
    cluster: Cluster,
    output: Output,
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    topic_config: tuple[tuple[str, str], ...],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Create topics."""
    from pyclient.admin import NewTopic
    from pyclient.error_codes import TopicExistsError

    wanted = [
        NewTopic(name, partitions or -1, replication_factor or -1, topic_configs=dict(topic_config))
        for name in names
    ]
    with cluster.admin() as admin:
        result = admin.create_topics(
            wanted, validate_only=dry_run, raise_errors=False, wait_for_metadata=not dry_run
        )
    rows = []
    failure = None
    for topic in result.topics:
        exists = topic.error_code == TopicExistsError.code and if_not_exists
        if topic.error_code and not exists:
            failure = failure or for_code(topic.error_code)(topic.error_message or topic.name)
        outcome = "exists" if exists else "failed" if topic.error_code else "created"
        rows.append(
            {
                "topic": topic.name,
                "result": "valid" if dry_run and outcome == "created" else outcome,
                "partitions": None if topic.error_code else topic.num_partitions,
                "replicas": None if topic.error_code else topic.replication_factor,
                "error": topic.error_message if outcome == "failed" else None,
            }
        )
    columns = [Column("topic", style="cyan"), Column("result", style=_result_style),
               Column("partitions", right=True), Column("replicas", right=True)]  # fmt: skip
    if output.as_json or len(rows) > 1 or failure is None:
        output.rows(rows, columns)
    if failure is not None:
        raise failure


def _result_style(result: str) -> str:
    return {"failed": "red", "exists": "yellow"}.get(result, "green")


@command.command()
@click.argument("names", nargs=-1, metavar="[TOPIC...]")
@cluster_options
@output_options
def describe(cluster: Cluster, output: Output, names: tuple[str, ...]) -> None:
    """Show partitions, leaders, replicas and changed configurations; by default of all topics."""
    from pyclient.admin import ConfigResource

    with cluster.admin() as admin:
        topics = [
            one for one in admin.describe_topics(names or None) if names or not one.is_internal
        ]
        for topic in topics:
            if topic.error_code:
                raise for_code(topic.error_code)(f"topic {topic.name!r} does not exist")
        resources = [ConfigResource("TOPIC", topic.name or "") for topic in topics]
        configs = admin.describe_configs(resources).get("topic", {}) if resources else {}
        ends = _watermarks(admin, topics)
    described = [
        {
            "topic": topic.name,
            "id": topic.topic_id,
            "internal": topic.is_internal,
            "configs": {
                name: entry["value"] for name, entry in configs.get(topic.name or "", {}).items()
            },
            "partitions": [
                {
                    "partition": one.partition_index,
                    "leader": one.leader_id,
                    "leader_epoch": one.leader_epoch,
                    "replicas": one.replica_nodes,
                    "isr": one.isr_nodes,
                    "offline": one.offline_replicas,
                    **ends.get(TopicPartition(topic.name or "", one.partition_index), {}),
                }
                for one in sorted(topic.partitions, key=lambda each: each.partition_index)
            ],
        }
        for topic in topics
    ]
    if output.as_json:
        output.json(described)
        return
    for index, facts in enumerate(described):
        if index:
            click.echo()
        _show(output, facts)


def _show(output: Output, topic: dict[str, Any]) -> None:
    shown = {
        "Topic": click.style(topic["topic"], fg="cyan", bold=True),
        "Id": topic["id"],
        "Partitions": len(topic["partitions"]),
        **topic["configs"],
    }
    output.fields(shown)
    click.echo()
    columns = [Column("partition", right=True), Column("leader", right=True),
               Column("replicas"), Column("isr"), Column("start", right=True),
               Column("end", right=True), Column("records", right=True)]  # fmt: skip
    output.rows(topic["partitions"], columns)


def _watermarks(admin: Any, topics: list[Any]) -> dict[TopicPartition, dict[str, int]]:
    from pyclient.admin import OffsetSpec

    keys = [
        TopicPartition(topic.name or "", one.partition_index)
        for topic in topics
        for one in topic.partitions
        if one.leader_id >= 0
    ]
    if not keys:
        return {}
    first = admin.list_partition_offsets(dict.fromkeys(keys, OffsetSpec.EARLIEST))
    last = admin.list_partition_offsets(dict.fromkeys(keys, OffsetSpec.LATEST))
    return {
        key: {
            "start": first[key].offset,
            "end": last[key].offset,
            "records": last[key].offset - first[key].offset,
        }
        for key in keys
    }


@command.command()
@click.argument("name", metavar="TOPIC")
@click.option("-p", "--partitions", type=click.IntRange(1), help="More partitions than now.")
@click.option("-c", "--topic-config", type=KEY_VALUE, multiple=True, help="Set an option.")
@click.option("--delete-config", multiple=True, metavar="KEY", help="Back to the default.")
@click.option("--dry-run", is_flag=True, help="Only check whether it could be done.")
@cluster_options
@output_options
def alter(
    cluster: Cluster,
    output: Output,
    name: str,
    partitions: int | None,
    topic_config: tuple[tuple[str, str], ...],
    delete_config: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Add partitions, set and reset a topic's options."""
    from pyclient.cli.commands.configs import change

    if partitions is None and not topic_config and not delete_config:
        raise click.UsageError("Give --partitions, --topic-config or --delete-config.")
    with cluster.admin() as admin:
        if partitions is not None:
            admin.create_partitions({name: partitions}, validate_only=dry_run)
        if topic_config or delete_config:
            change(admin, "TOPIC", name, dict(topic_config), delete_config, dry_run=dry_run)
    verb = "could be altered" if dry_run else "altered"
    output.done(f"Topic {name} {verb}.", topic=name, altered=not dry_run)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option("--if-exists", is_flag=True, help="A topic that does not exist is no error.")
@yes_option
@cluster_options
@output_options
def delete(
    cluster: Cluster, output: Output, names: tuple[str, ...], if_exists: bool, yes: bool
) -> None:
    """Delete topics and all their records."""
    from pyclient.error_codes import UnknownTopicOrPartitionError

    confirm(f"Delete {', '.join(names)} and all records?", yes=yes)
    with cluster.admin() as admin:
        result = admin.delete_topics(names, raise_errors=False)
    failure = None
    rows = []
    for topic in result.topics:
        absent = topic.error_code == UnknownTopicOrPartitionError.code and if_exists
        if topic.error_code and not absent:
            failure = failure or for_code(topic.error_code)(
                f"topic {topic.name!r}: {topic.error_message or 'cannot be deleted'}"
            )
        outcome = "absent" if absent else "failed" if topic.error_code else "deleted"
        rows.append({"topic": topic.name, "result": outcome})
    if output.as_json or len(rows) > 1 or failure is None:
        output.rows(rows, [Column("topic", style="cyan"), Column("result", style=_result_style)])
    if failure is not None:
        raise failure


@command.command()
@click.argument("name", metavar="TOPIC")
@click.option(
    "-t", "--time", "moment", metavar="TIME|earliest|latest|max", default="latest",
    show_default=True, help="A time (2026-01-31T18:00, -2h), or an end of the partition.",
)  # fmt: skip
@cluster_options
@output_options
def offsets(cluster: Cluster, output: Output, name: str, moment: str) -> None:
    """Show the first offset at or after a time, per partition."""
    from pyclient.admin import OffsetSpec

    ends = {
        "earliest": OffsetSpec.EARLIEST,
        "latest": OffsetSpec.LATEST,
        "max": OffsetSpec.MAX_TIMESTAMP,
    }
    spec = ends[moment] if moment in ends else TIMESTAMP.convert(moment, None, None)
    with cluster.admin() as admin:
        keys = partitions_of(admin, name)
        found = admin.list_partition_offsets(dict.fromkeys(keys, spec))
    rows = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "offset": one.offset if one.offset >= 0 else None,
            "timestamp": one.timestamp if one.timestamp >= 0 else None,
        }
        for key, one in sorted(found.items())
    ]
    output.rows(
        rows,
        [Column("topic", style="cyan"), Column("partition", right=True),
         Column("offset", right=True), Column("timestamp", show=numbers.time)],
    )  # fmt: skip


def partitions_of(admin: Any, name: str) -> list[TopicPartition]:
    """The partitions of a topic.

    Raises:
        UnknownTopicOrPartitionError: it does not exist.
    """
    (topic,) = admin.describe_topics([name])
    if topic.error_code:
        raise for_code(topic.error_code)(f"topic {name!r} does not exist")
    if not topic.partitions:
        raise KafkaConfigurationError(f"topic {name!r} has no partitions")
    return sorted(TopicPartition(name, one.partition_index) for one in topic.partitions)
