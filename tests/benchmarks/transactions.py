"""Transactions a second, ours and Apache Kafka's: `python -m tests.benchmarks.transactions`.

One raw-protocol load plays all producers, so that no client library is measured; each transaction
is one record of 100 bytes and its commit. The broker's CPU for a transaction is printed too.
"""

import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.interop.apache_kafka import ApacheKafkaUnavailable, apache_kafka
from tests.support.broker_load import cpu_seconds, create_topic
from tests.support.server_process import ServerProcess
from tests.support.transaction_load import TOPIC, TransactionLoad

ROUNDS = 5
WARM_UP_ROUNDS = 2  # the JVM compiles for the first ten seconds of a load
ROUND_SECONDS = 4.0
PARTITIONS = 4
PRODUCERS = (1, 16)
BAR = 1.0


class Contender(NamedTuple):
    """A running broker."""

    port: int
    pid: int


class Figures(NamedTuple):
    """Transactions a second, and the broker's CPU milliseconds for each."""

    rate: float
    cpu_ms: float


def measure(contender: Contender, producers: int) -> Figures:
    load = TransactionLoad(contender.port, producers, PARTITIONS)
    try:
        load.run_for(0.5)
        before = cpu_seconds(contender.pid)
        done = load.run_for(ROUND_SECONDS)
        spent = cpu_seconds(contender.pid) - before
    finally:
        load.close()
    return Figures(done / ROUND_SECONDS, spent / done * 1000)


def in_turn(ours: Contender, theirs: Contender, producers: int) -> tuple[Figures, Figures]:
    """The medians of both; the first rounds warm up and do not count."""
    taken: tuple[list[Figures], list[Figures]] = ([], [])
    for _ in range(WARM_UP_ROUNDS + ROUNDS):
        for contender, figures in zip((ours, theirs), taken, strict=True):
            figures.append(measure(contender, producers))
    mine, peers = (
        Figures(*map(statistics.median, zip(*figures[WARM_UP_ROUNDS:], strict=True)))
        for figures in taken
    )
    return mine, peers


def compare(ours: Contender, theirs: Contender) -> bool:
    """Print the table; whether every bar was reached."""
    rows = {producers: in_turn(ours, theirs, producers) for producers in PRODUCERS}
    print(f"\nTransactions\n{'':32}  {'ours':>9}  {'Kafka':>9}  {'ratio':>7}  {'bar':>6}")
    passed = True
    for producers, (mine, peer) in rows.items():
        ratio = mine.rate / peer.rate
        good = ratio >= BAR
        passed &= good
        what = f"{producers} producers, 1/s"
        print(
            f"{what:32}  {mine.rate:9.0f}  {peer.rate:9.0f}  {ratio:6.2f}x  {BAR:5.1f}x"
            f"{'' if good else '  MISSED'}"
        )
        print(f"{'  CPU of the broker, ms each':32}  {mine.cpu_ms:9.3f}  {peer.cpu_ms:9.3f}")
    return passed


def main() -> int:
    """Start both brokers and compare them."""
    with tempfile.TemporaryDirectory() as folder:
        data, peer_data = Path(folder) / "ours", Path(folder) / "theirs"
        peer_data.mkdir()
        try:
            with ServerProcess("--data-dir", data) as server, apache_kafka(peer_data) as apache:
                for one in (server, apache):
                    create_topic(one.bootstrap_servers, TOPIC, PARTITIONS)
                ours, theirs = (
                    Contender(server.port, server.pid),
                    Contender(apache.port, apache.pid),
                )
                return 0 if compare(ours, theirs) else 1
        except ApacheKafkaUnavailable as reason:
            print(f"\nTransactions: not compared: {reason}")
            return 0


if __name__ == "__main__":
    sys.exit(main())
