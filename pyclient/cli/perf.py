"""`pyclient perf produce|consume`: load tests with the options and output of Kafka's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.clock import SystemClock


@click.group("perf")
def command() -> None:
    """Measure how fast records can be sent or read.

    Without --bootstrap-server, an embedded broker is started for the run.
    """


@command.command()
@click.option("--topic", default="perf-test", show_default=True)
@click.option("--num-records", type=click.IntRange(1), required=True, help="How many to send.")
@click.option("--record-size", type=click.IntRange(1), default=100, show_default=True)
@click.option(
    "--throughput", type=int, default=-1, help="Records per second at most; -1 is no limit."
)
@cluster_options
def produce(
    cluster: Cluster, topic: str, num_records: int, record_size: int, throughput: int
) -> None:
    """Send records and report rate and latency."""
    from pyclient.perf.produce import measure_produce

    with _servers(cluster) as servers:
        client = {**cluster.options("producer"), "bootstrap.servers": servers}
        for line in measure_produce(
            client, topic, num_records, record_size, throughput, SystemClock()
        ):
            print(line, flush=True)


@command.command()
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

    with _servers(cluster) as servers:
        if cluster.named_servers is None:
            _fill(servers, topic, messages)
        client = {**cluster.options("consumer"), "bootstrap.servers": servers}
        for line in measure_consume(client, topic, messages, timeout, SystemClock()):
            print(line, flush=True)


@contextmanager
def _servers(cluster: Cluster) -> Iterator[str]:
    if cluster.named_servers is not None:
        yield cluster.named_servers
        return
    from broker_stub import Broker

    with Broker() as broker:
        yield broker.bootstrap_servers


def _fill(servers: str, topic: str, count: int) -> None:
    """An embedded broker is empty: give it something to read."""
    from pyclient import KafkaProducer

    options: dict[str, Any] = {"bootstrap_servers": servers}
    with KafkaProducer(**options) as producer:
        payload = bytes(100)
        for _ in range(count):
            producer.send(topic, payload)
