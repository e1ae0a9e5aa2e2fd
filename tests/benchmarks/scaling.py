"""Cost per record as numbers grow, as a page of plots: `python -m tests.benchmarks.scaling`.

The numbers are partitions, connections, consumers and threads. Each point is a process of its own
on the bundled broker, the median of some rounds; sizes take turns, so that a busy minute falls on
all of them. The page is one HTML file without scripts, `build/scaling.html` unless `--page` says
otherwise. There are no bars: those are in `producer`, `consumer` and `engine`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.perf.report import Section, Series, line_chart, page, short_number, table
from tests.benchmarks.client_races import running
from tests.benchmarks.parts import parts_parser
from tests.support.broker_load import create_topic, delete_topic
from tests.support.producer_load import Watch, payload
from tests.support.server_process import ROOT

ROUNDS = 3
SCALE = float(os.environ.get("BENCH_SCALE", "1"))
COUNT = int(200_000 * SCALE)  # records of a point
TIMEOUT_SECONDS = 120
POINT_SECONDS_MAX = 300
VALUE_SIZE = 100
PARTITIONS = 16  # where something else grows

Figures = Mapping[str, float]
Measure = Callable[[str, str, int], Figures]  # of bootstrap servers, topic and number


class Sweep(NamedTuple):
    """What grows, and what is measured at each size."""

    name: str
    title: str
    text: str
    sizes: Sequence[int]
    measure: Measure


class Point(NamedTuple):
    """The medians at one size: microseconds of the client's CPU per record, records per second."""

    size: int
    cpu_us: float
    rate: float


def send_in_turn(bootstrap: str, topic: str, producers: int) -> Figures:
    """Send from one thread through several producers, which have a connection each."""
    load = payload(COUNT, VALUE_SIZE, keyed=False)
    opened = [KafkaProducer(bootstrap_servers=bootstrap) for _ in range(producers)]
    for producer in opened:
        producer.send(topic, b"warm").get(TIMEOUT_SECONDS)
    watch = Watch()
    for number, producer in enumerate(opened):
        send = producer.send
        for value in load.values[number::producers]:
            send(topic, value)
    for producer in opened:
        producer.flush(TIMEOUT_SECONDS)
    taken = watch.stop(COUNT)
    for producer in opened:
        producer.close()
    return taken


def send_keys(bootstrap: str, topic: str, _partitions: int) -> Figures:
    """Send random keys, which spread over all partitions."""
    load = payload(COUNT, VALUE_SIZE, keyed=True)
    assert load.keys is not None
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"warm").get(TIMEOUT_SECONDS)
        watch = Watch()
        for value, key in zip(load.values, load.keys, strict=True):
            producer.send(topic, value, key)
        producer.flush(TIMEOUT_SECONDS)
        return watch.stop(COUNT)


def send_from_threads(bootstrap: str, topic: str, threads: int) -> Figures:
    """Send through one producer from several threads."""
    load = payload(COUNT, VALUE_SIZE, keyed=False)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"warm").get(TIMEOUT_SECONDS)

        def send(values: Sequence[bytes]) -> None:
            for value in values:
                producer.send(topic, value)

        workers = [
            threading.Thread(target=send, args=(load.values[number::threads],))
            for number in range(threads)
        ]
        watch = Watch()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        producer.flush(TIMEOUT_SECONDS)
        return watch.stop(COUNT)


def read_partitions(bootstrap: str, topic: str, partitions: int) -> Figures:
    """Read all partitions of a topic with one consumer."""
    return _read(bootstrap, topic, partitions, 1)


def read_in_turn(bootstrap: str, topic: str, consumers: int) -> Figures:
    """Read a topic from one thread with several consumers, which share its partitions."""
    return _read(bootstrap, topic, PARTITIONS, consumers)


def _read(bootstrap: str, topic: str, partitions: int, consumers: int) -> Figures:
    load = payload(COUNT, VALUE_SIZE, keyed=False)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(partitions):
            producer.send_many(topic, load.values[number::partitions], partition=number)
        producer.flush(TIMEOUT_SECONDS)
    opened = []
    for first in range(consumers):
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        consumer.assign(
            [TopicPartition(topic, number) for number in range(first, partitions, consumers)]
        )
        opened.append(consumer)
    watch = Watch()
    left = COUNT
    while left > 0:
        for consumer in opened:
            polled = consumer.poll(timeout_ms=10, max_records=5_000)
            left -= sum(map(len, polled.values()))
    taken = watch.stop(COUNT)
    for consumer in opened:
        consumer.close()
    return taken


SWEEPS = (
    Sweep(
        "produce-partitions",
        "Producing, by partitions",
        "Random keys over all partitions of one topic.",
        (1, 10, 100, 1000),
        send_keys,
    ),
    Sweep(
        "consume-partitions",
        "Consuming, by partitions",
        "One consumer of all partitions, each with its share of the records.",
        (1, 10, 100, 1000),
        read_partitions,
    ),
    Sweep(
        "connections",
        "Producing, by connections",
        "Several producers in one process, with a connection and an I/O thread each.",
        (1, 2, 4, 8, 16),
        send_in_turn,
    ),
    Sweep(
        "consumers",
        "Consuming, by consumers",
        f"Several consumers in one process share {PARTITIONS} partitions.",
        (1, 2, 4, 8, 16),
        read_in_turn,
    ),
    Sweep(
        "threads",
        "Producing, by threads",
        "Several threads send through one producer.",
        (1, 2, 4, 8),
        send_from_threads,
    ),
)


def scaling_page(points: Mapping[str, Sequence[Point]], about: str) -> str:
    """The page: a table and two plots for each sweep that was measured."""
    sections = [_section(sweep, points[sweep.name]) for sweep in SWEEPS if sweep.name in points]
    return page("Cost per record as numbers grow", sections, subtitle=about)


def _section(sweep: Sweep, points: Sequence[Point]) -> Section:
    label = sweep.name.rpartition("-")[2]
    first = points[0]
    rows = [
        (
            f"{point.size:,}",
            f"{point.cpu_us:.3f}",
            f"{point.cpu_us / first.cpu_us:.2f}x",
            short_number(point.rate),
            f"{point.rate / first.rate:.2f}x",
        )
        for point in points
    ]
    head = (label, "CPU us per record", f"of {first.size}", "records/s", f"of {first.size}")
    charts = [
        line_chart(title, [Series(label, figures)], x_label=label, y_label=unit, log_x=True)
        for title, unit, figures in (
            ("Client CPU", "us per record", [(one.size, one.cpu_us) for one in points]),
            ("Rate", "records/s", [(one.size, one.rate) for one in points]),
        )
    ]
    return Section(sweep.title, sweep.text, tables=[table(head, rows)], charts=charts)


def run_sweep(sweep: Sweep, bootstrap: str, rounds: int) -> list[Point]:
    """Measure all sizes, in turn."""
    figures: dict[int, list[Figures]] = {size: [] for size in sweep.sizes}
    for number in range(rounds):
        for size in sweep.sizes:
            topic = f"{sweep.name}-{size}-{number}"
            create_topic(bootstrap, topic, size if "partitions" in sweep.name else PARTITIONS)
            command = [sys.executable, "-m", "tests.benchmarks.scaling"]
            command += ["--point", sweep.name, str(size), bootstrap, topic]
            done = subprocess.run(
                command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
                timeout=POINT_SECONDS_MAX,
            )  # fmt: skip
            figures[size].append(json.loads(done.stdout))
            delete_topic(bootstrap, topic)
    return [
        Point(size, *(statistics.median(one[name] for one in found) for name in ("cpu_us", "rate")))
        for size, found in figures.items()
    ]


def main(arguments: list[str]) -> None:
    """Measure, print the figures, write the page."""
    names = [sweep.name for sweep in SWEEPS]
    parser = parts_parser(__doc__, names)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--page", type=Path, default=ROOT / "build" / "scaling.html")
    parser.add_argument("--point", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.point:
        name, size, bootstrap, topic = chosen.point
        measure = next(sweep.measure for sweep in SWEEPS if sweep.name == name)
        print(json.dumps(measure(bootstrap, topic, int(size))))
        return
    print(f"\nCost per record as numbers grow, {chosen.rounds} rounds of {COUNT:,} records")
    points = {}
    with running("ours") as bootstrap:
        for sweep in SWEEPS:
            if chosen.part and sweep.name not in chosen.part:
                continue
            points[sweep.name] = run_sweep(sweep, bootstrap, chosen.rounds)
            for point in points[sweep.name]:
                print(
                    f"{sweep.name:20} {point.size:5}  {point.cpu_us:7.3f} us  {point.rate:9.0f}/s",
                    flush=True,
                )
    about = (
        f"{COUNT:,} records of {VALUE_SIZE} B on the bundled broker; medians of {chosen.rounds}"
        f" rounds; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end."
    )
    chosen.page.parent.mkdir(parents=True, exist_ok=True)
    chosen.page.write_text(scaling_page(points, about))
    print(f"plots: {chosen.page}")


if __name__ == "__main__":
    main(sys.argv[1:])
