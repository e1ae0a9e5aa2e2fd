"""`pyclient perf produce|consume`: load tests with the options and output of Kafka's own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
    "--throughput", type=float, default=-1, help="Records per second at most; -1 is no limit."
)
@click.option(
    "--arrival",
    type=click.Choice(["fixed", "poisson"]),
    default="fixed",
    show_default=True,
    help="With --throughput: evenly spaced, or independent arrivals.",
)
@click.option(
    "--warmup-records", type=click.IntRange(0), default=0, help="Sent first, and not counted."
)
@click.option(
    "--payload-file", type=click.Path(path_type=Path), help="Take values from this file, in turn."
)
@click.option("--payload-delimiter", default="\\n", show_default=True, help="Between its values.")
@click.option(
    "--compressibility",
    type=click.FloatRange(0, 1),
    help="Share of each value that is one repeated byte; the rest is random.",
)
@click.option(
    "--key-distribution",
    type=click.Choice(["none", "uniform", "zipf"]),
    default="none",
    show_default=True,
)
@click.option("--keys", type=click.IntRange(1), default=10_000, help="How many different keys.")
@click.option("--result", type=click.Path(path_type=Path), help="Write the figures here, as JSON.")
@click.option(
    "--report", type=click.Path(path_type=Path), help="Write a page with plots here, as HTML."
)
@cluster_options
def produce(
    cluster: Cluster,
    topic: str,
    num_records: int,
    throughput: float,
    arrival: str,
    warmup_records: int,
    key_distribution: str,
    keys: int,
    result: Path | None,
    report: Path | None,
    **payload: Any,
) -> None:
    """Send records and report rate and latency.

    With --throughput, latencies are counted from when a record was due, so that a stalled broker
    shows in the percentiles. Ctrl-C ends the run and prints what it has.
    """
    from pyclient.errors import KafkaError
    from pyclient.perf import FixedRate, Poisson, Window, uniform_keys, window_line, zipf_keys
    from pyclient.perf.produce import ProduceLoad, run_produce

    schedule = None
    if throughput > 0:
        schedule = FixedRate(throughput) if arrival == "fixed" else Poisson(throughput, seed=0)
    drawn = {"none": None, "uniform": uniform_keys(keys), "zipf": zipf_keys(keys)}
    load = ProduceLoad(
        topic, num_records, _values(**payload), drawn[key_distribution], schedule, warmup_records
    )

    def show(window: Window) -> None:
        print(window_line(window), flush=True)

    with _servers(cluster) as servers:
        client = {**cluster.options("producer"), "bootstrap.servers": servers}
        done = run_produce(client, load, name=f"produce to {topic}", on_window=show)
    print(done.line(), flush=True)
    if result is not None:
        result.write_text(json.dumps(done.to_json()), encoding="utf-8")
    if report is not None:
        from pyclient.perf.report.results import results_page

        report.write_text(results_page("Load test", [done]), encoding="utf-8")
    if done.failed:
        raise KafkaError(
            f"{done.failed} of {num_records} records were not delivered; one of them: "
            f"{done.first_error or 'not sampled'}"
        )
    if done.interrupted:
        raise KeyboardInterrupt


@command.command("report")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
def report_command(results: tuple[Path, ...], output: Path) -> None:
    """Compare results (of --result) on one page with plots."""
    from dataclasses import replace

    from pyclient.errors import KafkaConfigurationError
    from pyclient.perf import Result
    from pyclient.perf.report.results import results_page

    runs = []
    for path in results:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise KafkaConfigurationError(f"{path} is not JSON: {error}") from error
        runs.append(replace(Result.from_json(document), name=path.stem))
    output.write_text(results_page("Load tests compared", runs), encoding="utf-8")


def _values(
    record_size: int,
    payload_file: Path | None,
    payload_delimiter: str,
    compressibility: float | None,
) -> list[bytes]:
    from pyclient.perf import generated_values, values_from_file

    if payload_file is None:
        return generated_values(record_size, compressibility)
    return values_from_file(payload_file, payload_delimiter.replace("\\n", "\n").encode())


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


@command.command()
@click.option("--topic", default="verify-test", show_default=True)
@click.option("--num-records", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--throughput", type=float, default=-1, help="Records per second; -1 is no limit.")
@click.option(
    "--timeout", type=click.IntRange(1), default=60_000, show_default=True, metavar="MS",
    help="Give up when nothing can be read for this long.",
)  # fmt: skip
@cluster_options
def verify(cluster: Cluster, topic: str, num_records: int, throughput: float, timeout: int) -> None:
    """Prove that nothing is lost, doubled or reordered.

    Sends numbered records and reads them back, also while brokers restart. Ctrl-C stops sending
    and verifies what was sent.
    """
    from pyclient.errors import KafkaError
    from pyclient.perf import FixedRate
    from pyclient.perf.verify import verify_delivery

    with _servers(cluster) as servers:
        address = {"bootstrap.servers": servers}
        ledger = verify_delivery(
            {**cluster.options("producer"), **address},
            {**cluster.options("consumer"), **address},
            topic,
            num_records,
            schedule=FixedRate(throughput) if throughput > 0 else None,
            timeout_ms=timeout,
        )
    for each in ledger.shown:
        print(each)
    print(ledger.verdict())
    if ledger.faults:
        raise KafkaError(f"{ledger.faults.total()} faults were found")


@contextmanager
def _servers(cluster: Cluster) -> Iterator[str]:
    if cluster.named_servers is not None:
        yield cluster.named_servers
        return
    from pyclient.perf.processes import broker_process

    with broker_process() as servers:
        yield servers


def _fill(servers: str, topic: str, count: int) -> None:
    """An embedded broker is empty: give it something to read."""
    from pyclient import KafkaProducer

    options: dict[str, Any] = {"bootstrap_servers": servers}
    with KafkaProducer(**options) as producer:
        payload = bytes(100)
        for _ in range(count):
            producer.send(topic, payload)
