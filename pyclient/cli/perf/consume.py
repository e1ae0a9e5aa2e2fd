"""`pyclient perf consume`."""

from typing import Any

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.perf.outcome import servers_of
from pyclient.clock import SystemClock


@click.command()
@click.option("--topic", default="perf-test", show_default=True)
@click.option("--messages", type=click.IntRange(1), required=True, help="How many to read.")
@click.option(
    "--timeout", type=click.IntRange(1), default=10_000, show_default=True, metavar="MS",
    help="Give up when nothing came for this long.",
)  # fmt: skip
@cluster_options
def consume(cluster: Cluster, topic: str, messages: int, timeout: int) -> None:
    """Read records and report the rate."""
    from pyclient.perf.consume import measure_consume

    with servers_of(cluster) as servers:
        if cluster.named_servers is None:
            _fill(servers, topic, messages)
        client = {**cluster.options("consumer"), "bootstrap.servers": servers}
        for line in measure_consume(client, topic, messages, timeout, SystemClock()):
            print(line, flush=True)


def _fill(servers: str, topic: str, count: int) -> None:
    """An embedded broker is empty: give it something to read."""
    from pyclient import KafkaProducer

    options: dict[str, Any] = {"bootstrap_servers": servers}
    with KafkaProducer(**options) as producer:
        payload = bytes(100)
        for _ in range(count):
            producer.send(topic, payload)
