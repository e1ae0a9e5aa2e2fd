"""The consumer against other clients: `python -m tests.benchmarks.consumer`.

One broker in a process of its own, each client in one, in turn, over the same data, which is
written once; every round has a fresh consumer. The median of the rounds, and of each round's ratio:
a ratio says how many times better ours is, in speed, CPU or time. `--part NAME` runs one part,
`--list` names them, `--broker apache` takes Apache Kafka instead of the bundled broker.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from tests.benchmarks.client_races import (
    HEADING,
    Bar,
    ClientProcess,
    lines_of,
    print_lines,
    running,
)
from tests.benchmarks.parts import parts_parser
from tests.support.broker_load import create_topic
from tests.support.consumer_load import Job
from tests.support.producer_load import payload

ROUNDS = 7
PARTITIONS = 4
SCALE = float(os.environ.get("BENCH_SCALE", "1"))
COUNTS = {100: int(1_500_000 * SCALE), 1000: int(300_000 * SCALE), 10: 100}  # records, by size
SLOWER = {"kafka-python": 20, "aiokafka": 8, "pure": 8, "confluent-poll": 2}  # these read fewer
DISTINCT = 20_000
RUN = 500  # records in a row to a partition


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
FEW = Load(10, partitions=1, busy=1)  # so that the first response is not megabytes
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
    Part("first-assign", "first-assign", (Bar("confluent-assign", "ms", 1, 5),), FEW),
    Part("first-subscribe", "first-subscribe", (Bar("confluent-subscribe", "ms", 1, 5),), FEW),
    Part("pure", "pure", (Bar("kafka-python", "rate", 2),)),
)


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
    part: Part, number: int, bootstrap: str, workers: dict[str, ClientProcess]
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
        workers = {
            client: stack.enter_context(ClientProcess(client, "tests.support.consumer_load"))
            for client in clients
        }
        run_round(part, 0, bootstrap, workers)  # imports and caches
        measured = [run_round(part, number, bootstrap, workers) for number in range(rounds)]
    yield from lines_of(part.name, part.contender, part.bars, measured)


def main(arguments: list[str]) -> bool:
    """Print the table; whether every bar was reached."""
    parser = parts_parser(__doc__, [part.name for part in PARTS])
    parser.add_argument("--broker", choices=("ours", "apache"), default="ours")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args(arguments)
    parts = [part for part in PARTS if chosen.part is None or part.name in chosen.part]
    print(f"\nConsumer, {chosen.rounds} rounds (rate: records/s, cpu_us: of the client, a record)")
    print(HEADING)
    with running(chosen.broker) as bootstrap:
        loads = [load for part in parts for load in (part.load, part.peer_load) if load]
        for load in dict.fromkeys(loads):
            fill(bootstrap, load)
        return print_lines(
            line for part in parts for line in run_part(part, bootstrap, chosen.rounds)
        )


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
