"""`pyclient cluster`: brokers, controllers, disks, features, API versions."""

from typing import Any

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.output import numbers
from pyclient.cli.output.printing import Column, Output, output_options
from pyclient.error_codes import BrokerIdNotRegisteredError
from pyclient.errors import for_code

_EPILOG = """\b
Examples:
  pyclient cluster describe
  pyclient cluster log-dirs --topic orders
  pyclient cluster api-versions --broker 1
  pyclient cluster features
  pyclient cluster quorum
"""


@click.group("cluster", epilog=_EPILOG)
def command() -> None:
    """Show brokers, controllers, disks, features and API versions."""


@command.command()
@cluster_options
@output_options
def describe(cluster: Cluster, output: Output) -> None:
    """Show the cluster's id, its brokers and the controller."""
    with cluster.admin() as admin:
        found = admin.describe_cluster()
        rows = [
            {
                "broker": one.broker_id,
                "host": one.host,
                "port": one.port,
                "rack": one.rack,
                "controller": one.broker_id == found.controller_id,
                "release": _release(admin.get_broker_version_data(one.broker_id)),
            }
            for one in sorted(found.brokers, key=lambda one: one.broker_id)
        ]
    if output.as_json:
        output.json({"id": found.cluster_id, "controller": found.controller_id, "brokers": rows})
        return
    output.fields({"Cluster": click.style(found.cluster_id, bold=True), "Brokers": len(rows)})
    click.echo()
    output.rows(
        rows,
        [Column("broker", right=True, style="cyan"), Column("host", wrap=True),
         Column("port", right=True), Column("rack"), Column("controller"),
         Column("release", title="API OF")],
    )  # fmt: skip


def _release(data: Any) -> str:
    """Brokers do not tell their release: the newest one that their APIs fit."""
    return "Kafka " + ".".join(str(part) for part in data.broker_version)


def _check_brokers(admin: Any, wanted: tuple[int, ...]) -> None:
    if not wanted:
        return
    known = sorted(one.broker_id for one in admin.describe_cluster().brokers)
    for broker in wanted:
        if broker not in known:
            raise BrokerIdNotRegisteredError(
                f"there is no broker {broker}; there are {', '.join(map(str, known))}"
            )


@command.command("log-dirs")
@click.option("--broker", type=int, multiple=True, metavar="ID", help="Only this one's.  [all]")
@click.option("--topic", multiple=True, metavar="NAME", help="Only this topic's.  [all]")
@cluster_options
@output_options
def log_dirs(
    cluster: Cluster, output: Output, broker: tuple[int, ...], topic: tuple[str, ...]
) -> None:
    """Show what lies on the brokers' disks: sizes by topic."""
    with cluster.admin() as admin:
        _check_brokers(admin, broker)
        found = admin.describe_log_dirs(topic or None, broker or None)
    if output.as_json:
        output.json(found)
        return
    rows = []
    for of in found:
        for folder in of.log_dirs:
            if folder.error_code:
                raise for_code(folder.error_code)(f"broker {of.broker}: {folder.log_dir}")
            rows += [
                {
                    "broker": of.broker,
                    "folder": folder.log_dir,
                    "topic": one.name,
                    "partitions": len(one.partitions),
                    "size": sum(each.partition_size for each in one.partitions),
                }
                for one in sorted(folder.topics, key=lambda one: one.name)
            ]
    output.rows(
        rows,
        [Column("broker", right=True), Column("folder", wrap=True), Column("topic", style="cyan"),
         Column("partitions", right=True), Column("size", right=True, show=numbers.size)],
        empty="There are no such partitions.",
    )  # fmt: skip


@command.command("api-versions")
@click.option("--broker", type=int, metavar="ID", help="Which; by default any.")
@cluster_options
@output_options
def api_versions(cluster: Cluster, output: Output, broker: int | None) -> None:
    """Show the versions of each API that a broker serves, and the one that is used."""
    from pyclient.errors import UnsupportedVersionError
    from pyclient.protocol.registry import API_NAMES, choose_version, request_class

    with cluster.admin() as admin:
        _check_brokers(admin, () if broker is None else (broker,))
        served = (
            admin.api_versions()
            if broker is None
            else admin.get_broker_version_data(broker).api_versions
        )
    rows = []
    for key, versions in sorted(served.items()):
        used: int | None
        try:
            used = choose_version(request_class(key)(), versions)
        except (KeyError, UnsupportedVersionError):
            used = None
        rows.append(
            {
                "key": key,
                "api": API_NAMES.get(key, "unknown"),
                "lowest": versions.lowest,
                "highest": versions.highest,
                "used": used,
            }
        )
    output.rows(
        rows,
        [Column("key", right=True), Column("api", style="cyan"), Column("lowest", right=True),
         Column("highest", right=True), Column("used", right=True, style="green")],
    )  # fmt: skip


@command.command()
@cluster_options
@output_options
def features(cluster: Cluster, output: Output) -> None:
    """Show the cluster's features and their levels."""
    with cluster.admin() as admin:
        found = admin.describe_features()
    rows = [
        {
            "feature": name,
            "level": one["finalized"][1] if "finalized" in one else None,
            "supported": list(one.get("supported", ())) or None,
        }
        for name, one in sorted(found.items())
    ]
    output.rows(
        rows,
        [Column("feature", style="cyan"), Column("level", right=True),
         Column("supported", show=lambda pair: f"{pair[0]} to {pair[1]}")],
        empty="The cluster has no features.",
    )  # fmt: skip


@command.command()
@cluster_options
@output_options
def quorum(cluster: Cluster, output: Output) -> None:
    """Show the controllers and how far each has got in the metadata log."""
    with cluster.admin() as admin:
        found = admin.describe_metadata_quorum()
    (partition,) = (one for topic in found.topics for one in topic.partitions)
    end = max((one.log_end_offset for one in partition.current_voters), default=-1)
    rows = [
        {
            "node": one.replica_id,
            "role": "leader" if one.replica_id == partition.leader_id else role,
            "log_end_offset": one.log_end_offset,
            "lag": end - one.log_end_offset,
            "last_fetch": one.last_fetch_timestamp if one.last_fetch_timestamp > 0 else None,
        }
        for role, replicas in (
            ("follower", partition.current_voters),
            ("observer", partition.observers),
        )
        for one in replicas
    ]
    if not output.as_json:
        output.fields(
            {
                "Leader": partition.leader_id,
                "Epoch": partition.leader_epoch,
                "High watermark": partition.high_watermark,
            }
        )
        click.echo()
    output.rows(
        rows,
        [Column("node", right=True, style="cyan"), Column("role"),
         Column("log_end_offset", right=True), Column("lag", right=True),
         Column("last_fetch", show=numbers.time)],
    )  # fmt: skip
