"""Our transactions against confluent-kafka's:`python -m tests.benchmarks.transactional_clients`.

Three rows: records a second at 1,000 records of 100 B a transaction, the median time of a commit
at 10 records a transaction, and what reading committed records costs over reading all of them. Each
client runs in this process, in turn. `--broker apache` takes Apache Kafka, not the bundled broker.
"""

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import confluent_kafka

from pyclient import KafkaConsumer, KafkaProducer, TopicPartition
from tests.interop.apache_kafka import apache_kafka
from tests.support.broker_load import create_topic
from tests.support.server_process import ServerProcess

ROUNDS = 5
TOPIC = "transactions"
PARTITIONS = 4
VALUE = b"x" * 100
LARGE = (60, 1_000)  # transactions a round, records in each
SMALL = (200, 10)

Measured = tuple[float, list[float]]  # seconds of all, and of each commit


def ours(servers: str, transactions: int, records: int) -> Measured:
    """Our producer."""
    with KafkaProducer(bootstrap_servers=servers, transactional_id=uuid.uuid4().hex) as producer:
        producer.init_transactions()
        _ours_once(producer, records)  # warm
        began = time.perf_counter()
        commits = [_ours_once(producer, records) for _ in range(transactions)]
        return time.perf_counter() - began, commits


def _ours_once(producer: KafkaProducer, records: int) -> float:
    producer.begin_transaction()
    for _ in range(records):
        producer.send(TOPIC, VALUE)
    began = time.perf_counter()
    producer.commit_transaction()
    return time.perf_counter() - began


def theirs(servers: str, transactions: int, records: int) -> Measured:
    """confluent-kafka's, with its defaults."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "transactional.id": uuid.uuid4().hex}
    )
    producer.init_transactions(30)
    _theirs_once(producer, records)
    began = time.perf_counter()
    commits = [_theirs_once(producer, records) for _ in range(transactions)]
    return time.perf_counter() - began, commits


def _theirs_once(producer: confluent_kafka.Producer, records: int) -> float:
    producer.begin_transaction()
    for _ in range(records):
        producer.produce(TOPIC, VALUE)
        producer.poll(0)
    began = time.perf_counter()
    producer.commit_transaction(30)
    return time.perf_counter() - began


def read(servers: str, isolation_level: str) -> float:
    """Records a second, of all that the rounds have written."""
    with KafkaConsumer(bootstrap_servers=servers, isolation_level=isolation_level) as consumer:
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        count = 0
        began = time.perf_counter()
        while any(consumer.position(one) < end for one, end in ends.items()):
            count += sum(map(len, consumer.poll(timeout_ms=1_000, max_records=10_000).values()))
        return count / (time.perf_counter() - began)


def report(what: str, mine: list[float], peers: list[float], bar: float, *, least: bool) -> bool:
    """Print a row; the ratio says how many times better ours is, by each round's pair."""
    ratios = [
        (one / other if least else other / one) for one, other in zip(mine, peers, strict=True)
    ]
    ratio = statistics.median(ratios)
    good = ratio >= bar
    print(
        f"{what:34}  {statistics.median(mine):10.1f}  {statistics.median(peers):10.1f}"
        f"  {ratio:6.2f}x  {bar:5.2f}x{'' if good else '  MISSED'}"
    )
    return good


def compare(servers: str) -> bool:
    """Run the rounds, and print the table."""
    large: tuple[list[float], list[float]] = ([], [])
    small: tuple[list[float], list[float]] = ([], [])
    clients: tuple[Callable[[str, int, int], Measured], ...] = (ours, theirs)
    for _ in range(ROUNDS):
        for client, rates, waits in zip(clients, large, small, strict=True):
            seconds, _commits = client(servers, *LARGE)
            rates.append(LARGE[0] * LARGE[1] / seconds)
            _seconds, commits = client(servers, *SMALL)
            waits.append(statistics.median(commits) * 1000)
    reads: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for level, rates in zip(("read_committed", "read_uncommitted"), reads, strict=True):
            rates.append(read(servers, level))
    print(f"\nTransactions\n{'':34}  {'ours':>10}  {'peer':>10}  {'ratio':>7}  {'bar':>6}")
    rows = [
        report("100 B, 1,000 a transaction, 1/s", *large, 2, least=True),
        report("commit of 10 records, p50 ms", *small, 1, least=False),
        report("read_committed / uncommitted, 1/s", *reads, 1 / 1.1, least=True),
    ]
    return all(rows)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--broker", choices=("ours", "apache"), default="ours")
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if chosen.broker == "apache":
            servers = stack.enter_context(apache_kafka(folder)).bootstrap_servers
        else:
            server = stack.enter_context(ServerProcess("--data-dir", folder))
            servers = server.bootstrap_servers
        create_topic(servers, TOPIC, PARTITIONS)
        return 0 if compare(servers) else 1


if __name__ == "__main__":
    sys.exit(main())
