"""The producer against confluent-kafka and kafka-python: `python -m tests.benchmarks.producer`.

One broker in a process of its own, each client in one, in turn; every round has a fresh producer
that is warm. The median of the rounds, and of each round's ratio: a ratio says
how many times better ours is, in speed, CPU or time. `--row NAME` runs one row, `--list` names
them, `--broker apache` takes Apache Kafka instead of the bundled broker.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from tests.benchmarks.client_races import (
    HEADING,
    Bar,
    ClientProcess,
    lines_of,
    print_lines,
    running,
)
from tests.benchmarks.parts import parts_parser
from tests.support.broker_load import create_topic, delete_topic
from tests.support.producer_load import Job

ROUNDS = 7
PARTITIONS = 6
SCALE = float(os.environ.get("BENCH_SCALE", "1"))
COUNTS = {100: int(500_000 * SCALE), 1000: int(150_000 * SCALE)}  # records a round, by size
SLOWER = {"kafka-python": 20, "pure": 10}  # these get fewer, and so about the same time


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


def run_round(
    row: Row, number: int, bootstrap: str, workers: dict[str, ClientProcess]
) -> dict[str, Any]:
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
        workers = {
            client: stack.enter_context(ClientProcess(client, "tests.support.producer_load"))
            for client in clients
        }
        rounds = [run_round(row, number, bootstrap, workers) for number in range(ROUNDS)]
    yield from lines_of(row.name, row.contender, row.bars, rounds)


def main(arguments: list[str]) -> bool:
    """Print the table; whether every bar was reached."""
    parser = parts_parser(__doc__, [row.name for row in ROWS], "--row")
    parser.add_argument("--broker", choices=("ours", "apache"), default="ours")
    chosen = parser.parse_args(arguments)
    rows = [row for row in ROWS if chosen.row is None or row.name in chosen.row]
    print(f"\nProducer, {ROUNDS} rounds (rate: records/s, cpu_us: of the client, a record)")
    print(HEADING)
    with running(chosen.broker) as bootstrap:
        return print_lines(line for row in rows for line in run_row(row, bootstrap))


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
