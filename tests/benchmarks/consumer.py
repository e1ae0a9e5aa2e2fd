"""The consumer against other clients: `python -m tests.benchmarks.consumer`.

One broker in a process of its own, each client in one, in turn, over the same data, which is
written once; every round has a fresh consumer. The median of the rounds, and of each round's ratio:
a ratio says how many times better ours is, in speed, CPU or time. `--part NAME` runs one part,
`--list` names them, `--broker apache` takes Apache Kafka instead of the bundled broker.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from tests.benchmarks.producer import running
from tests.support.broker_load import create_topic
from tests.support.consumer_load import Job
from tests.support.producer_load import payload
from tests.support.server_process import ROOT

ROUNDS = 7
PARTITIONS = 4
SCALE = float(os.environ.get("BENCH_SCALE", "1"))
COUNTS = {100: int(1_500_000 * SCALE), 1000: int(300_000 * SCALE)}  # records, by size
SLOWER = {"kafka-python": 20, "aiokafka": 8, "pure": 8, "confluent-poll": 2}  # these read fewer
DISTINCT = 20_000
RUN = 500  # records in a row to a partition


class Bar(NamedTuple):
    """A peer, what is compared, and how many times better ours has to be; 0 is no bar.

    `most` bounds ours itself.
    """

    peer: str
    figure: str
    least: float = 0
    most: float = 0


class Load(NamedTuple):
    """A topic, and what is in it."""

    size: int = 100
    codec: str | None = None
    partitions: int = PARTITIONS
    busy: int = PARTITIONS  # that have records

    @property
    def topic(self) -> str:
        return f"{self.size}-{self.codec or 'plain'}-{self.partitions}-{self.busy}"


class Part(NamedTuple):
    """One line of the issue's table."""

    name: str
    contender: str
    bars: tuple[Bar, ...]
    load: Load = Load()
    peer_load: Load | None = None  # if another one


def speed(size: int, codec: str | None, least: float, cpu: float = 0) -> Part:
    """Throughput against the clients that people use."""
    name = f"{'1KB' if size == 1000 else '100B'}{'' if codec is None else f'-{codec}'}"
    bars = [Bar("confluent", "rate", least)]
    if codec is None:
        bars.append(Bar("confluent", "cpu_us", cpu))
        bars.append(Bar("kafka-python", "rate", 20 if size == 100 else 8))
        bars.append(Bar("aiokafka", "rate"))
    return Part(name, "ours", tuple(bars), Load(size, codec))


ONE = Load(partitions=1, busy=1)
PARTS = (
    speed(100, None, 2.5, 1 / 0.35),
    speed(100, "lz4", 2.5),
    speed(100, "zstd", 2),
    speed(1000, None, 1.3, 1 / 0.8),
    speed(1000, "lz4", 1.3),
    speed(1000, "zstd", 1.6),
    Part("iteration", "iteration", (Bar("ours", "rate", 0.8), Bar("confluent-poll", "rate", 3))),
    Part("arrow-100B", "arrow", (Bar("ours", "rate", 2), Bar("ours", "cpu_us", 2))),
    Part("arrow-1KB", "arrow", (Bar("ours", "rate", 1.2), Bar("ours", "cpu_us", 1.2)), Load(1000)),
    Part(
        "1000-partitions",
        "ours",
        (Bar("one", "cpu_us", 1 / 1.5),),
        Load(partitions=1000, busy=1000),
        ONE,
    ),
    Part("996-idle", "ours", (Bar("one", "cpu_us", 1 / 1.5),), Load(partitions=1000), ONE),
    Part("first-assign", "first-assign", (Bar("confluent-assign", "ms", 1, 5),), ONE),
    Part("first-subscribe", "first-subscribe", (Bar("confluent-subscribe", "ms", 1, 5),), ONE),
    Part("pure", "pure", (Bar("kafka-python", "rate", 2),)),
)
CLIENT_OF = {"one": "ours", "pure": "ours"}  # a contender that is another one in disguise


class Worker:
    """A client's process, which does one job after another."""

    def __init__(self, client: str, module: str = "tests.support.consumer_load") -> None:
        environment = dict(os.environ)
        if client == "pure":
            environment["PYCLIENT_IMPL"] = "python"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, CLIENT_OF.get(client, client)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, job: NamedTuple) -> dict[str, float]:
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


def fill(bootstrap: str, load: Load) -> None:
    """Write a load's records: runs of them to each busy partition in turn."""
    from pyclient import KafkaProducer

    create_topic(bootstrap, load.topic, load.partitions)
    values = payload(DISTINCT, load.size, False).values
    with KafkaProducer(bootstrap_servers=bootstrap, compression_type=load.codec) as producer:
        for number in range(COUNTS[load.size]):
            partition = number // RUN % load.busy
            producer.send(load.topic, values[number % DISTINCT], partition=partition)
        producer.flush()


def run_round(
    part: Part, number: int, bootstrap: str, workers: dict[str, Worker]
) -> dict[str, dict[str, float]]:
    """All contenders once, in turn."""
    results = {}
    order = list(workers) if number % 2 else list(reversed(workers))
    for client in order:
        is_peer = client != part.contender
        load = part.peer_load if is_peer and part.peer_load is not None else part.load
        count = COUNTS[load.size] // SLOWER.get(client, 1)
        job = Job(bootstrap, load.topic, load.partitions, count)
        results[client] = workers[client].run(job)
    return results


def run_part(part: Part, bootstrap: str, rounds: int) -> Iterator[tuple[str, bool]]:
    """A line of text for each bar, and whether it was reached."""
    clients = [part.contender, *dict.fromkeys(bar.peer for bar in part.bars)]
    with ExitStack() as stack:
        workers = {client: stack.enter_context(Worker(client)) for client in clients}
        run_round(part, 0, bootstrap, workers)  # imports and caches
        measured = [run_round(part, number, bootstrap, workers) for number in range(rounds)]
    for bar in part.bars:
        pairs = [(one[part.contender][bar.figure], one[bar.peer][bar.figure]) for one in measured]
        yield line_of(part.name, bar, pairs)


def line_of(name: str, bar: Bar, pairs: list[tuple[float, float]]) -> tuple[str, bool]:
    """A line of the table, and whether its bar was reached."""
    ratios = sorted(a / b if bar.figure == "rate" else b / a for a, b in pairs)
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(ratios)
    passed = ratio >= bar.least and (not bar.most or ours <= bar.most)
    least = f"{bar.least:4.1f}x" if bar.least else "     "
    return (
        f"{name:16} {bar.peer:19} {bar.figure:7} {short(ours):>9} {short(theirs):>9}"
        f" {ratio:6.2f}x  {least}  {ratios[0]:5.2f} to {ratios[-1]:5.2f}"
        f"{'' if passed else '  MISSED'}",
        passed,
    )


def short(figure: float) -> str:
    return f"{figure / 1000:.0f}k" if figure >= 10_000 else f"{figure:.3f}"


def main(arguments: list[str]) -> bool:
    """Print the table; whether every bar was reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("--part", action="append", choices=names, help="only this one")
    parser.add_argument("--broker", choices=("ours", "apache"), default="ours")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--list", action="store_true", help="name the parts")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        print("\n".join(names))
        return True
    parts = [part for part in PARTS if chosen.part is None or part.name in chosen.part]
    print(f"\nConsumer, {chosen.rounds} rounds (rate: records/s, cpu_us: of the client, a record)")
    return run_table(parts, chosen.broker, chosen.rounds, run_part)


def run_table(
    parts: list[Part],
    broker: str,
    rounds: int,
    run: Callable[[Any, str, int], Iterator[tuple[str, bool]]],
) -> bool:
    """Write the loads that the parts read, run them, and print a line a bar."""
    print(f"{'':43}  {'ours':>9} {'peer':>9} {'ratio':>7} {'bar':>6}   range")
    passed = True
    with running(broker) as bootstrap:
        loads = [load for part in parts for load in (part.load, part.peer_load) if load]
        for load in dict.fromkeys(loads):
            fill(bootstrap, load)
        for part in parts:
            for line, reached in run(part, bootstrap, rounds):
                print(line, flush=True)
                passed &= reached
    return passed


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
