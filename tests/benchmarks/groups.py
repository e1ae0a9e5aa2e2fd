"""Consumer groups, ours and Apache Kafka's in turn: `python -m tests.benchmarks.groups`.

Three figures: how long 500 members of a new group need until all are in one stable generation, how
many synchronous commits 10 members get answered, and what 1,000 members cost that only send
heartbeats. Both brokers have the same `group.initial.rebalance.delay.ms`, and one raw-protocol load
plays all members, so that no client library is measured.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.interop.apache_kafka import ApacheKafkaUnavailable, apache_kafka
from tests.support.broker_load import cpu_seconds, create_topic
from tests.support.group_load import TOPIC, GroupLoad
from tests.support.server_process import ServerProcess

ROUNDS = 5
WARM_UP_ROUNDS = 2  # the JVM compiles for the first ten seconds of a load
DELAY_MS = 1_000
HEARTBEAT_SECONDS = 3.0
SETTLING = 500
COMMITTING = 10
COMMIT_SECONDS = 5.0
IDLE_GROUPS = {f"idle-{number}": 100 for number in range(10)}
IDLE_SECONDS = 30.0
IDLE_BAR_PERCENT = 5.0
CONFIG = {"group.initial.rebalance.delay.ms": str(DELAY_MS)}


class Contender(NamedTuple):
    """A running broker."""

    name: str
    port: int
    pid: int


def settle(contender: Contender, number: int) -> float:
    """Seconds until all members are in one stable generation."""
    load = GroupLoad(contender.port, HEARTBEAT_SECONDS)
    try:
        return load.settle({f"settle-{number}": SETTLING})
    finally:
        load.close()


def commit(contender: Contender, number: int) -> float:
    """Synchronous commits a second."""
    load = GroupLoad(contender.port, HEARTBEAT_SECONDS)
    try:
        load.settle({f"commit-{number}": COMMITTING})
        return load.commit_for(COMMIT_SECONDS) / COMMIT_SECONDS
    finally:
        load.close()


def idle(contender: Contender) -> float:
    """The broker's CPU as percent of one core."""
    load = GroupLoad(contender.port, HEARTBEAT_SECONDS)
    try:
        load.settle(IDLE_GROUPS)
        load.idle_for(HEARTBEAT_SECONDS)  # the rebalances are over
        before = cpu_seconds(contender.pid)
        load.idle_for(IDLE_SECONDS)
        return (cpu_seconds(contender.pid) - before) / IDLE_SECONDS * 100
    finally:
        load.close()


def in_turn(
    measure: Callable[[Contender, int], float], ours: Contender, theirs: Contender
) -> tuple[float, float]:
    """The medians of both; the first rounds warm up and do not count."""
    figures: tuple[list[float], list[float]] = ([], [])
    for number in range(WARM_UP_ROUNDS + ROUNDS):
        for contender, taken in zip((ours, theirs), figures, strict=True):
            taken.append(measure(contender, number))
    mine, peers = (statistics.median(taken[WARM_UP_ROUNDS:]) for taken in figures)
    return mine, peers


def compare(ours: Contender, theirs: Contender) -> bool:
    """Print the table; whether every bar was reached."""
    mine_seconds, their_seconds = in_turn(settle, ours, theirs)
    mine_rate, their_rate = in_turn(commit, ours, theirs)
    mine_idle, their_idle = idle(ours), idle(theirs)
    rows = [
        (
            f"{SETTLING} members settle, s",
            mine_seconds,
            their_seconds,
            their_seconds / mine_seconds,
        ),
        (f"commits of {COMMITTING} members, 1/s", mine_rate, their_rate, mine_rate / their_rate),
    ]
    print(f"\nConsumer groups\n{'':32}  {'ours':>9}  {'Kafka':>9}  {'ratio':>7}  {'bar':>6}")
    passed = True
    for what, mine, peer, ratio in rows:
        good = ratio >= 1
        passed &= good
        print(
            f"{what:32}  {mine:9.2f}  {peer:9.2f}  {ratio:6.2f}x   1.0x{'' if good else '  MISSED'}"
        )
    count = sum(IDLE_GROUPS.values())
    good = mine_idle < IDLE_BAR_PERCENT
    print(
        f"{f'{count} idle members, % of a core':32}  {mine_idle:9.2f}  {their_idle:9.2f}  "
        f"{'':7}  <{IDLE_BAR_PERCENT:4.1f}%{'' if good else '  MISSED'}"
    )
    return passed and good


def main() -> int:
    """Start both brokers and compare them."""
    with tempfile.TemporaryDirectory() as folder:
        data, peer_data = Path(folder) / "ours", Path(folder) / "theirs"
        peer_data.mkdir()
        options = [part for key, value in CONFIG.items() for part in ("--config", f"{key}={value}")]
        try:
            with (
                ServerProcess("--data-dir", data, *options) as server,
                apache_kafka(peer_data, CONFIG) as kafka,
            ):
                for bootstrap in (server.bootstrap_servers, kafka.bootstrap_servers):
                    create_topic(bootstrap, TOPIC, 1)
                ours = Contender("broker_stub", server.port, server.pid)
                theirs = Contender("Apache Kafka", kafka.port, kafka.pid)
                return 0 if compare(ours, theirs) else 1
        except ApacheKafkaUnavailable as reason:
            print(f"\nConsumer groups: not compared: {reason}")
            return 0


if __name__ == "__main__":
    sys.exit(main())
