"""What the I/O thread costs: latency, many partitions, idling: `python -m tests.benchmarks.engine`.

Throughput is in `producer` and `consumer`; here are the rows where the turn of the I/O thread and
its bookkeeping matter. Clients take turns, in a process each; a ratio says how many times better
ours is, in speed or time. `--part NAME` runs one part, `--list` names them, `--broker apache` takes
Apache Kafka instead of the bundled broker.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
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
from tests.support import end_to_end_load, producer_load
from tests.support.broker_load import create_topic, delete_topic
from tests.support.server_process import ROOT, ServerProcess

ROUNDS = 5
SECONDS = 2  # of a round at a steady rate
SCALE = float(os.environ.get("BENCH_SCALE", "1"))
MANY = 10_000
IDLE_SECONDS = 10
IDLE_PERCENT_MAX = 1.0
STOP_SECONDS_MAX = 3.0

Lines = Iterator[tuple[str, bool]]


class Race(NamedTuple):
    """A job for ours and for confluent-kafka, and what is compared."""

    name: str
    module: str
    job: Callable[[str, str], NamedTuple]  # from bootstrap servers and topic
    bars: tuple[Bar, ...]
    partitions: int = 1


def send_to_ack(rate: int, p50: float, p99: float) -> Race:
    """From `send` to its callback, without linger."""

    def job(bootstrap: str, topic: str) -> NamedTuple:
        return producer_load.Job(bootstrap, topic, SECONDS * rate, 100, {}, rate=rate)

    bars = (Bar("confluent", "p50_ms", p50), Bar("confluent", "p99_ms", p99))
    return Race(f"ack-{rate}", "tests.support.producer_load", job, bars)


def end_to_end(rate: int) -> Race:
    """From `send` to the poll that returns the record."""

    def job(bootstrap: str, topic: str) -> NamedTuple:
        return end_to_end_load.Job(bootstrap, topic, SECONDS * rate, rate)

    bars = (Bar("confluent", "p50_ms", 1 / 1.5), Bar("confluent", "p99_ms", 1))
    return Race(f"end-to-end-{rate}", "tests.support.end_to_end_load", job, bars)


def random_keys(partitions: int) -> Race:
    """Keys that spread over many partitions."""

    def job(bootstrap: str, topic: str) -> NamedTuple:
        return producer_load.Job(bootstrap, topic, int(150_000 * SCALE), 100, {}, keyed=True)

    bars = (Bar("confluent", "rate", 2),)
    return Race(f"keys-{partitions}", "tests.support.producer_load", job, bars, partitions)


RACES = (
    send_to_ack(1_000, 1 / 1.5, 1),
    send_to_ack(5_000, 1 / 1.5, 2),
    end_to_end(1_000),
    end_to_end(5_000),
    random_keys(1_000),
    random_keys(MANY),
)


def run_race(race: Race, bootstrap: str, rounds: int) -> Lines:
    """A line of text for each bar, and whether it was reached."""
    clients = ("ours", "confluent")
    with ExitStack() as stack:
        for client in clients:
            create_topic(bootstrap, f"{race.name}-{client}", race.partitions)
            stack.callback(delete_topic, bootstrap, f"{race.name}-{client}")
        workers = {
            client: stack.enter_context(ClientProcess(client, race.module)) for client in clients
        }
        measured = []
        for number in range(rounds):
            order = clients if number % 2 else clients[::-1]
            measured.append(
                {client: workers[client].run(_job(race, bootstrap, client)) for client in order}
            )
    yield from lines_of(race.name, "ours", race.bars, measured)


def _job(race: Race, bootstrap: str, client: str) -> NamedTuple:
    job = race.job(bootstrap, f"{race.name}-{client}")
    if isinstance(job, producer_load.Job) and job.rate:
        return job._replace(options={"linger_ms" if client == "ours" else "linger.ms": 0})
    return job


_IDLE = f"""
import sys, time
from pyclient import KafkaConsumer, TopicPartition
consumer = KafkaConsumer(bootstrap_servers=sys.argv[1], auto_offset_reset="earliest")
consumer.assign([TopicPartition("many", number) for number in range({MANY})])
while sum(consumer.position(TopicPartition("many", number)) is None for number in (0, {MANY - 1})):
    consumer.poll(timeout_ms=1000)
consumer.poll(timeout_ms=3000)
before = time.process_time()
consumer.poll(timeout_ms={IDLE_SECONDS * 1000})
print(100 * (time.process_time() - before) / {IDLE_SECONDS})
"""


def run_idle(bootstrap: str) -> Lines:
    """The CPU of a consumer of many partitions that have nothing new."""
    create_topic(bootstrap, "many", MANY)
    done = subprocess.run(
        [sys.executable, "-c", _IDLE, bootstrap], cwd=ROOT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    percent = float(done.stdout)
    yield _line(f"idle-{MANY}", f"{percent:.2f} % of a core", percent, IDLE_PERCENT_MAX, "%")


def run_stop() -> Lines:
    """How long our broker takes to stop after writes to many partitions."""
    from pyclient import KafkaProducer

    taken = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            server = ServerProcess("--data-dir", folder).start()
            create_topic(server.bootstrap_servers, "many", MANY)
            with KafkaProducer(bootstrap_servers=server.bootstrap_servers) as producer:
                for number in range(MANY):
                    producer.send("many", b"value", partition=number)
                producer.flush(120)
            before = time.perf_counter()
            server.__exit__()
            taken.append(time.perf_counter() - before)
    seconds = statistics.median(taken)
    yield _line(f"broker-stop-{MANY}", f"{seconds:.1f} s", seconds, STOP_SECONDS_MAX, " s")


def _line(name: str, found: str, figure: float, most: float, unit: str) -> tuple[str, bool]:
    reached = figure <= most
    return f"{name:31} {found}  (at most {most:.0f}{unit}){'' if reached else '  MISSED'}", reached


def main(arguments: list[str]) -> bool:
    """Print the table; whether every bar was reached."""
    names = [*(race.name for race in RACES), "idle", "broker-stop"]
    parser = parts_parser(__doc__, names)
    parser.add_argument("--broker", choices=("ours", "apache"), default="ours")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args(arguments)
    wanted = chosen.part or names
    print(f"\nEngine, {chosen.rounds} rounds of {SECONDS} s")
    print(HEADING)
    with running(chosen.broker) as bootstrap:
        tables = [run_race(race, bootstrap, chosen.rounds) for race in RACES if race.name in wanted]
        if "idle" in wanted:
            tables.append(run_idle(bootstrap))
        passed = print_lines(chain.from_iterable(tables))
    if "broker-stop" in wanted:
        passed &= print_lines(run_stop())
    return passed


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
