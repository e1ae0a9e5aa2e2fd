"""The producer against confluent-kafka and kafka-python: `python -m tests.benchmarks.producer`.

One broker in a process of its own, each client in one, in turn; every round has a fresh producer
that is warm. The median of the rounds, and of each round's ratio: a ratio says
how many times better ours is, in speed, CPU or time. `--row NAME` runs one row, `--list` names
them, `--broker apache` takes Apache Kafka instead of the bundled broker.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.interop.apache_kafka import apache_kafka
from tests.support.broker_load import create_topic, delete_topic
from tests.support.producer_load import Job
from tests.support.server_process import ROOT, ServerProcess

ROUNDS = 7
PARTITIONS = 6
SCALE = float(os.environ.get("BENCH_SCALE", "1"))
COUNTS = {100: int(500_000 * SCALE), 1000: int(150_000 * SCALE)}  # records a round, by size
SLOWER = {"kafka-python": 20, "pure": 10}  # these get fewer, and so about the same time


class Bar(NamedTuple):
    """A peer, what is compared, and how many times better ours has to be."""

    peer: str
    figure: str
    least: float


class Row(NamedTuple):
    """One line of the issue's table."""

    name: str
    bars: tuple[Bar, ...]
    size: int = 100
    options: dict[str, Any] = {}  # of all contenders, by kafka-python's names
    keyed: bool = False
    partitions: int = PARTITIONS
    rate: int = 0
    columns: bool = False
    contender: str = "ours"
    share: float = 1  # of the usual number of records, where all are slow


def speed(confluent: float, kafka_python: float | None = None) -> tuple[Bar, ...]:
    """The bars of throughput."""
    bars = (Bar("confluent", "rate", confluent),)
    return bars if kafka_python is None else (*bars, Bar("kafka-python", "rate", kafka_python))


CPU = Bar("confluent", "cpu_us", 2)
EQUAL_BATCHES = {"batch_size": 16_384}

ROWS = (
    Row("100B-16K", (*speed(1.5, 15), CPU), options=EQUAL_BATCHES),
    Row("100B", (*speed(1.5, 15), CPU)),
    Row("100B-keys-6", speed(1.5), keyed=True),
    Row("100B-keys-1000", speed(1.5), keyed=True, partitions=1000, share=0.3),
    Row("1KB-16K", (*speed(1.3, 5), CPU), 1000, EQUAL_BATCHES),
    Row("1KB", (*speed(1.1, 5), CPU), 1000),
    Row("100B-lz4", speed(1.5), options={"compression_type": "lz4"}),
    Row("1KB-lz4", speed(1.1), 1000, {"compression_type": "lz4"}),
    Row("100B-zstd", speed(1.2), options={"compression_type": "zstd"}),
    Row("100B-arrow", speed(4), columns=True),
    Row(
        "latency",
        (Bar("confluent", "p50_ms", 0.5), Bar("confluent", "p99_ms", 2)),
        options={"linger_ms": 0},
        rate=5_000,
    ),
    Row("1000-partitions", (Bar("one-partition", "rate", 0.8),), partitions=1000),
    Row("pure", (Bar("kafka-python", "rate", 2),), contender="pure"),
)


class Worker:
    """A client's process, which does one job after another."""

    def __init__(self, client: str) -> None:
        environment = dict(os.environ)
        if client == "pure":
            environment["PYCLIENT_IMPL"] = "python"
        name = client if client in ("confluent", "kafka-python") else "ours"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.producer_load", name],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, job: Job) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job._asdict()) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the client's process died"
        figures: dict[str, float] = json.loads(line)
        return figures

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def options_of(row: Row, client: str) -> dict[str, Any]:
    """The same settings under each client's option names."""
    if client == "confluent":
        return {name.replace("_", "."): value for name, value in row.options.items()}
    if client == "kafka-python" or "batch_size" not in row.options:
        return row.options
    return {**row.options, "batch_max_size": row.options["batch_size"]}  # equal, so no growth


def topic_of(row: Row, client: str) -> str:
    """The topic of a client's records."""
    return f"{row.name}-{client}"


def run_round(row: Row, number: int, bootstrap: str, workers: dict[str, Worker]) -> dict[str, Any]:
    """Run every client once, in turn."""
    results = {}
    # The first one has the cooler machine, so that rotates too.
    order = list(workers) if number % 2 else list(reversed(workers))
    for client in order:
        count = int(COUNTS[row.size] * row.share) // SLOWER.get(client, 1)
        if row.rate:
            count = int(2 * row.rate * min(1, SCALE))
        columns = row.columns and client == "ours"
        job = Job(
            bootstrap,
            topic_of(row, client),
            count,
            row.size,
            options_of(row, client),
            row.keyed,
            row.rate,
            columns,
        )
        results[client] = workers[client].run(job)
    return results


def run_row(row: Row, bootstrap: str) -> Iterator[tuple[str, bool]]:
    """A line of text for each bar, and whether it was reached."""
    clients = [row.contender, *dict.fromkeys(bar.peer for bar in row.bars)]
    with ExitStack() as stack:
        for client in clients:
            partitions = 1 if client == "one-partition" else row.partitions
            create_topic(bootstrap, topic_of(row, client), partitions)
            stack.callback(delete_topic, bootstrap, topic_of(row, client))
        workers = {client: stack.enter_context(Worker(client)) for client in clients}
        rounds = [run_round(row, number, bootstrap, workers) for number in range(ROUNDS)]
    for bar in row.bars:
        pairs = [(one[row.contender][bar.figure], one[bar.peer][bar.figure]) for one in rounds]
        ratios = sorted(a / b if bar.figure == "rate" else b / a for a, b in pairs)
        ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(ratios)
        passed = ratio >= bar.least
        yield (
            f"{row.name:16} {bar.peer:14} {bar.figure:7} {_short(ours):>9} {_short(theirs):>9}"
            f" {ratio:6.2f}x  {bar.least:4.1f}x  {ratios[0]:5.2f} to {ratios[-1]:5.2f}"
            f"{'' if passed else '  MISSED'}",
            passed,
        )


def _short(figure: float) -> str:
    return f"{figure / 1000:.0f}k" if figure >= 10_000 else f"{figure:.2f}"


@contextmanager
def running(broker: str) -> Iterator[str]:
    """A broker; its data stays in memory where that can be had, so that no disk is measured."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        if broker == "apache":
            with apache_kafka(Path(folder), {"log.segment.delete.delay.ms": "1000"}) as node:
                yield node.bootstrap_servers
        else:
            config = ("--config", "log.segment.delete.delay.ms=1000")
            with ServerProcess("--data-dir", folder, *config) as server:
                yield server.bootstrap_servers


def main(arguments: list[str]) -> bool:
    """Print the table; whether every bar was reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [row.name for row in ROWS]
    parser.add_argument("--row", action="append", choices=names, help="only this one")
    parser.add_argument("--broker", choices=("ours", "apache"), default="ours")
    parser.add_argument("--list", action="store_true", help="name the rows")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        print("\n".join(names))
        return True
    print(f"\nProducer, {ROUNDS} rounds (rate: records/s, cpu_us: of the client, a record)")
    print(f"{'':38}  {'ours':>9} {'peer':>9} {'ratio':>7} {'bar':>6}   range")
    passed = True
    with running(chosen.broker) as bootstrap:
        for row in ROWS:
            if chosen.row is None or row.name in chosen.row:
                for line, reached in run_row(row, bootstrap):
                    print(line, flush=True)
                    passed &= reached
    return passed


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
