"""`pyclient perf produce`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.perf.outcome import conclude, run_options, servers_of, show_window


@click.command()
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
@run_options
@cluster_options
def produce(
    cluster: Cluster,
    num_records: int,
    throughput: float,
    warmup_records: int,
    payload_file: Path | None,
    payload_delimiter: str,
    clients: tuple[str, ...],
    processes: int,
    kafka_home: str | None,
    result: Path | None,
    report: Path | None,
    **rest: Any,
) -> None:
    """Send records and report rate and latency.

    With --throughput, latencies are counted from when a record was due, so that a stalled broker
    shows in the percentiles. Ctrl-C ends the run and prints what it has.
    """
    from pyclient.perf.runner import run_job
    from pyclient.perf.spec import ProduceSpec

    spec = ProduceSpec(
        records=num_records,
        rate=throughput if throughput > 0 else None,
        warm_up=warmup_records,
        payload_file=None if payload_file is None else str(payload_file.absolute()),
        payload_delimiter=payload_delimiter.replace("\\n", "\n"),
        **rest,
    )
    options = cluster.options("producer")
    results = []
    with servers_of(cluster) as servers:
        job = {
            "kind": "produce",
            "spec": asdict(spec),
            "options": {**options, "bootstrap.servers": servers},
            "kafka_home": kafka_home,
        }
        for client in clients:
            if len(clients) > 1:
                print(f"{client}:", flush=True)
            results.append(run_job({**job, "client": client}, processes, show_window("sent")))
            print(results[-1].line(), flush=True)
            if results[-1].interrupted:
                break
    conclude(results, result, report)
