"""`pyclient perf consume`."""

from typing import Any

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.perf.outcome import client_options, servers_of
from pyclient.clock import SystemClock


@click.command()
@click.option("--topic", default="perf-test", show_default=True)
@click.option("--messages", type=click.IntRange(1), required=True, help="How many to read.")
@click.option(
    "--timeout", type=click.IntRange(1), default=10_000, show_default=True, metavar="MS",
    help="Give up when nothing came for this long.",
)  # fmt: skip
@client_options
@cluster_options
def consume(
    cluster: Cluster,
    topic: str,
    messages: int,
    timeout: int,
    clients: tuple[str, ...],
    kafka_home: str | None,
) -> None:
    """Read records and report the rate, a line for each client."""
    from pyclient.perf.clients import JAVA, java
    from pyclient.perf.consume import HEADER, measure_consume

    with servers_of(cluster) as servers:
        if cluster.named_servers is None:
            _fill(servers, topic, messages)
        options = {**cluster.options("consumer"), "bootstrap.servers": servers}
        print(HEADER, flush=True)
        for client in clients:
            if client == JAVA:
                line = java.consume(options, topic, messages, timeout, kafka_home)
            else:
                line = measure_consume(client, options, topic, messages, timeout, SystemClock())
            print(line if len(clients) == 1 else f"{line}, {client}", flush=True)


def _fill(servers: str, topic: str, count: int) -> None:
    """An embedded broker is empty: give it something to read."""
    from pyclient import KafkaProducer

    options: dict[str, Any] = {"bootstrap_servers": servers}
    with KafkaProducer(**options) as producer:
        payload = bytes(100)
        for _ in range(count):
            producer.send(topic, payload)
