"""The broker against Apache Kafka in KRaft mode: `python -m tests.benchmarks.broker`.

Both run side by side on this machine and take turns under the same load, confluent-kafka's with
idempotence; medians of the rounds, and of each round's ratio. A ratio says how many times better
ours is: faster, smaller, or cheaper in CPU. `--part NAME` measures one part (it may be repeated),
`--list` names them. `BENCH_SCALE=0.1` makes it a short try.
"""

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.benchmarks.parts import Row, parts_parser, print_heading, print_rows
from tests.interop.apache_kafka import ApacheKafka, ApacheKafkaUnavailable, jars
from tests.support import broker_load as load
from tests.support.first_ack import wait_for_ack
from tests.support.many_partitions import many_partitions
from tests.support.server_process import ROOT, ServerProcess

SCALE = float(os.environ.get("BENCH_SCALE", "1"))
ROUNDS = 6 if SCALE >= 1 else 2
# The client is the limit of reading, and single rounds lie a third apart.
READ_ROUNDS = 24 if SCALE >= 1 else 2
START_ROUNDS = 3 if SCALE >= 1 else 1
LOADS = {1000: int(200e6 * SCALE), 100: int(60e6 * SCALE)}  # bytes in all, by record size
READS = 3  # reading is so much faster that a round of it takes more bytes
BARE_BYTES = int(1e9 * SCALE)
IDLE_SECONDS = 8
# As kafka-server-start.sh has it.
JVM = ("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
GIGABYTE = 1e9
TICK_SECONDS = 0.01  # what the kernel counts in: less is not seen


class Broker(Protocol):
    """Either of the two."""

    port: int

    @property
    def pid(self) -> int: ...

    @property
    def bootstrap_servers(self) -> str: ...


class Spent(NamedTuple):
    """What one run moved and took."""

    megabytes_per_second: float
    cpu_seconds_per_gigabyte: float


def row(what: str, pairs: list[tuple[float, float]], bar: float, *, more_is_better: bool) -> Row:
    """The medians of many rounds, each of ours and theirs."""
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratios = [a / b if more_is_better else b / a for a, b in pairs]
    return Row(what, ours, theirs, statistics.median(ratios), bar)


# --- starting ------------------------------------------------------------------------------------


def start_ours() -> float:
    """From the process's start to the first acknowledged record."""
    started = time.perf_counter()
    with ServerProcess() as server:
        wait_for_ack(server.port)
        return time.perf_counter() - started


def start_in_process() -> float:
    """From `Broker()` to the same, in a process that has it imported."""
    command = [sys.executable, "-m", "tests.support.first_ack"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout)


def start_theirs(folder: Path) -> float:
    """The same of Apache Kafka, in a folder that is formatted already."""
    node = ApacheKafka(folder, {}, JVM)
    node.format()
    started = time.perf_counter()
    node.launch()
    try:
        wait_for_ack(node.port)
        return time.perf_counter() - started
    finally:
        node.stop()


def starts(folder: Path) -> Iterator[Row]:
    process, in_process = [], []
    for number in range(START_ROUNDS):
        fresh = folder / f"start-{number}"
        fresh.mkdir()
        theirs = start_theirs(fresh)
        process.append((start_ours(), theirs))
        in_process.append((start_in_process(), theirs))
    yield row("process start to first ack, s", process, 20, more_is_better=False)
    yield row("in-process start to first ack, s", in_process, 50, more_is_better=False)


# --- load ----------------------------------------------------------------------------------------


def measured(broker: Broker, run: Callable[[], int]) -> Spent:
    """Run it; returns what it cost the broker."""
    cpu = load.cpu_seconds(broker.pid)
    started = time.perf_counter()
    moved = run()
    seconds = time.perf_counter() - started
    cpu = max(load.cpu_seconds(broker.pid) - cpu, TICK_SECONDS)
    return Spent(moved / 1e6 / seconds, cpu / (moved / GIGABYTE))


def produced(broker: Broker, topic: str, size: int) -> Spent:
    """Fill a new topic."""
    bootstrap = broker.bootstrap_servers
    load.create_topic(bootstrap, topic)
    try:
        return measured(broker, lambda: load.produce(bootstrap, topic, size, LOADS[size]))
    finally:
        load.delete_topic(bootstrap, topic)


def consumed(broker: Broker, topic: str, size: int) -> Spent:
    """Read all of a topic."""
    with load.reading_consumer(broker.bootstrap_servers, topic) as consume:
        return measured(broker, lambda: consume(size, READS * LOADS[size]))


def in_turn(
    ours: Broker, theirs: Broker, run: Callable[[Broker, int], Spent], count: int = ROUNDS
) -> list[tuple[Spent, Spent]]:
    """The rounds of both, in alternating order: the first one finds a quieter machine."""
    rounds = []
    for number in range(-1, count):  # one that does not count, for the JIT's sake
        first, second = (ours, theirs) if number % 2 else (theirs, ours)
        spent = {id(first): run(first, number)}
        spent[id(second)] = run(second, number)
        if number >= 0:
            rounds.append((spent[id(ours)], spent[id(theirs)]))
    return rounds


def loads(ours: Broker, theirs: Broker, size: int) -> Iterator[Row]:
    rounds = in_turn(ours, theirs, lambda one, number: produced(one, f"load-{number}", size))
    yield row(f"produce {size} B records, MB/s", speeds(rounds), 1.0, more_is_better=True)
    yield row("broker CPU s per GB of it", costs(rounds), 1 / 0.8, more_is_better=False)
    for broker in (ours, theirs):
        load.create_topic(broker.bootstrap_servers, "full")
        load.produce(broker.bootstrap_servers, "full", size, READS * LOADS[size], even_batches=True)
    rounds = in_turn(ours, theirs, lambda one, _: consumed(one, "full", size), READ_ROUNDS)
    yield row(f"consume {size} B records, MB/s", speeds(rounds), 1.0, more_is_better=True)


def speeds(rounds: list[tuple[Spent, Spent]]) -> list[tuple[float, float]]:
    return [(a.megabytes_per_second, b.megabytes_per_second) for a, b in rounds]


def costs(rounds: list[tuple[Spent, Spent]]) -> list[tuple[float, float]]:
    return [(a.cpu_seconds_per_gigabyte, b.cpu_seconds_per_gigabyte) for a, b in rounds]


def bare_fetches(ours: Broker, theirs: Broker) -> Iterator[Row]:
    for broker in (ours, theirs):
        load.create_topic(broker.bootstrap_servers, "bare")
        load.produce(broker.bootstrap_servers, "bare", 1000, LOADS[1000])

    def fetched(broker: Broker, _number: int) -> Spent:
        return measured(broker, lambda: load.fetch_bare(broker.port, "bare", BARE_BYTES))

    rounds = in_turn(ours, theirs, fetched)
    yield row("fetch without decoding, MB/s", speeds(rounds), 1.2, more_is_better=True)
    yield row("broker CPU s per GB of it", costs(rounds), 1 / 0.6, more_is_better=False)


def memory(what: str, ours: Broker, theirs: Broker, bar: float) -> Row:
    sizes = [load.resident_bytes(broker.pid) / 1e6 for broker in (ours, theirs)]
    return row(f"resident memory {what}, MB", [(sizes[0], sizes[1])], bar, more_is_better=False)


# --- all of it -----------------------------------------------------------------------------------


@contextmanager
def running(folder: Path) -> Iterator[tuple[ServerProcess, ApacheKafka]]:
    folder.mkdir()
    theirs = ApacheKafka(folder, {}, JVM)
    theirs.start()
    try:
        with ServerProcess() as ours:
            yield ours, theirs
    finally:
        theirs.stop()


def load_and_memory(size: int, folder: Path) -> Iterator[Row]:
    with running(folder / f"load-{size}") as (ours, theirs):
        wait_for_ack(ours.port)
        yield memory("idle", ours, theirs, 8)
        yield from loads(ours, theirs, size)
        yield memory("after the load", ours, theirs, 15)


def fetches(folder: Path) -> Iterator[Row]:
    with running(folder / "fetch") as (ours, theirs):
        yield from bare_fetches(ours, theirs)


def idle(_folder: Path) -> Iterator[Row]:
    """How much of a core a broker takes that has clients and nothing to do."""
    with ServerProcess() as ours:
        wait_for_ack(ours.port)
        with load.waiting_consumer(ours.bootstrap_servers, "first") as wait:
            wait(1)  # until it has found its way
            before = load.cpu_seconds(ours.pid)
            wait(IDLE_SECONDS)
            share = (load.cpu_seconds(ours.pid) - before) / IDLE_SECONDS
    yield Row("idle CPU, % of a core (bar: 1)", share * 100, 1, 1 / max(share * 100, 0.01), 1)


def partitions(_folder: Path) -> Iterator[Row]:
    seconds = many_partitions(int(10_000 * min(1, SCALE)), descriptors=4096)
    yield Row("10,000 partitions, 4,096 files, s", seconds, seconds, 1, 1)


PARTS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "start": starts,
    "load-1KB": partial(load_and_memory, 1000),
    "load-100B": partial(load_and_memory, 100),
    "fetch": fetches,
    "idle": idle,
    "partitions": partitions,
}


def main(arguments: Sequence[str]) -> bool:
    """Print the table; whether every bar was reached."""
    parsed = parts_parser(__doc__, PARTS).parse_args(arguments)
    try:
        jars()
    except ApacheKafkaUnavailable as reason:
        sys.exit(f"no comparison without Apache Kafka: {reason}")
    # As an install leaves it, and as Apache Kafka's jars come.
    for package in ("broker_stub", "pyclient"):
        compileall.compile_dir(ROOT / package, quiet=1)
    print_heading("Broker against Apache Kafka (ratio: how many times better)", "Apache")
    with tempfile.TemporaryDirectory() as folder:
        return print_rows(row for part in parsed.part or PARTS for row in PARTS[part](Path(folder)))


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
