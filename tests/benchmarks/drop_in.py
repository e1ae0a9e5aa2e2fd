"""Programs written for other clients, on them and on this package.

`python -m tests.benchmarks.drop_in`: the loops that people write for kafka-python (JSON, keys,
iteration) and for confluent-kafka (`produce` with delivery reports, `consume(500)`). One broker, a
process per client and round, in turn; the median of each round's ratio. `--row NAME` runs one row.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.client_races import running
from tests.support.producer_load import payload

ROOT = Path(__file__).parents[2]
ROUNDS = 5


class Row(NamedTuple):
    """A program, what it imports of each side, and how many times faster ours must be."""

    name: str
    ours: str
    theirs: str
    records: int
    peer_records: int
    bar: float


ROWS = (
    Row("habit-produce", "pyclient", "kafka", 200_000, 40_000, 5),
    Row("habit-consume", "pyclient", "kafka", 200_000, 40_000, 4),
    Row("face-produce", "pyclient.compat.confluent", "confluent_kafka", 500_000, 500_000, 1.5),
    Row("face-consume", "pyclient.compat.confluent", "confluent_kafka", 500_000, 500_000, 1.5),
)


def run(row: Row, package: str, servers: str, topic: str) -> dict[str, float]:
    """What the program took."""
    count = row.records if package == row.ours else row.peer_records
    command = [sys.executable, "-m", "tests.support.drop_in_load", row.name, package]
    done = subprocess.run(
        [*command, servers, topic, str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def fill(servers: str) -> None:
    """The topics that are read."""
    from pyclient import KafkaProducer

    order = json.dumps({"order": 1, "table": 2, "item": "espresso", "price": 2.4}).encode()
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send_many("habit-consume", [order] * ROWS[1].records)
        producer.send_many("face-consume", payload(ROWS[3].records, 100, keyed=False).values)


def main(arguments: list[str]) -> bool:
    """Print the table; whether every bar was reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", action="append", choices=[row.name for row in ROWS])
    chosen = parser.parse_args(arguments)
    print(f"\nPrograms for other clients, {ROUNDS} rounds (rate: records/s; ratios of both)")
    print(f"{'':14} {'ours':>9} {'peer':>9} {'rate':>7} {'bar':>5}  {'range':>14} {'CPU':>6}")
    passed = True
    with running("ours") as servers:
        fill(servers)
        for row in ROWS:
            if chosen.row is not None and row.name not in chosen.row:
                continue
            pairs = []
            for number in range(ROUNDS):
                sides = [row.ours, row.theirs] if number % 2 else [row.theirs, row.ours]
                found = {side: run(row, side, servers, row.name) for side in sides}
                pairs.append((found[row.ours], found[row.theirs]))
            ratios = sorted(ours["rate"] / theirs["rate"] for ours, theirs in pairs)
            cpu = statistics.median(theirs["cpu_us"] / ours["cpu_us"] for ours, theirs in pairs)
            rates = [statistics.median(one[side]["rate"] for one in pairs) for side in (0, 1)]
            ratio = statistics.median(ratios)
            passed &= ratio >= row.bar
            print(
                f"{row.name:14} {rates[0]:9.0f} {rates[1]:9.0f} {ratio:6.2f}x {row.bar:4.1f}x"
                f"  {ratios[0]:5.2f} to {ratios[-1]:5.2f} {cpu:5.2f}x"
                f"{'' if ratio >= row.bar else '  MISSED'}",
                flush=True,
            )
    return passed


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
