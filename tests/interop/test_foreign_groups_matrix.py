"""Groups of one to six foreign processes, every assignor they have, through every mishap.

A slice of the matrix runs with the interop tests, all of it by `make soak-groups`.
"""

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.interop.group_processes import SESSION_MS, ForeignGroup, group_server, watching_owners
from tests.support.broker_load import create_topic
from tests.support.server_process import ServerProcess

PARTITIONS = 6
TOPIC = "orders"
ASSIGNORS = {
    "confluent": ("range", "roundrobin", "cooperative-sticky"),
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
}
SLICE = {
    ("confluent", "cooperative-sticky"),
    ("kafka-python", "range"),
    ("aiokafka", "sticky"),
}
MIXED = [
    ("confluent", "kafka-python", "range"),
    ("confluent", "aiokafka", "roundrobin"),
    ("kafka-python", "aiokafka", "range"),
    ("kafka-python", "aiokafka", "sticky"),
    ("confluent", "kafka-python", "cooperative-sticky"),
]

pytestmark = pytest.mark.timeout(600)


def cell(library: str, assignor: str) -> object:
    marks = () if (library, assignor) in SLICE else pytest.mark.soak
    return pytest.param(library, assignor, marks=marks)


MATRIX = [cell(library, assignor) for library, names in ASSIGNORS.items() for assignor in names]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with group_server(tmp_path, TOPIC, PARTITIONS) as running:
        yield running


class Records:
    """Sends a record to each partition in turn, until it is stopped; `sent` are acknowledged."""

    def __init__(self, bootstrap: str, topics: tuple[str, ...] = (TOPIC,)) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self.topics = topics
        self.sent: set[str] = set()
        self._over = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> "Records":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> set[str]:
        """Send no more; all values that were acknowledged."""
        self._over.set()
        self._thread.join()
        assert self._producer.flush(30) == 0
        return self.sent

    def _delivered(self, error: object, message: Any) -> None:
        if error is None:
            self.sent.add(message.value().decode())

    def _run(self) -> None:
        number = 0
        while not self._over.wait(0.02):
            for topic in self.topics:
                value = f"{topic}-{number}"
                self._producer.produce(
                    topic,
                    value.encode(),
                    partition=number % PARTITIONS,
                    on_delivery=self._delivered,
                )
            self._producer.poll(0)
            number += 1


@pytest.mark.parametrize(("library", "assignor"), MATRIX)
def test_groups_grow_and_shrink_through_every_mishap(server, library, assignor):
    with (
        watching_owners(server.port, "group") as sizes,
        Records(server.bootstrap_servers) as records,
        ForeignGroup(server.port, "group", TOPIC, PARTITIONS) as group,
    ):
        first = group.start(library, assignor)
        group.wait_until_shared()
        group.start(library, assignor)
        group.wait_until_shared()
        third, _ = group.start(library, assignor), group.start(library, assignor)
        group.wait_until_shared()
        first.kill()
        group.wait_until_shared()
        third.stall()
        group.wait_until_shared(*(one for one in group.alive if one is not third))
        third.resume()
        group.wait_until_shared()
        for _ in range(3):
            group.start(library, assignor)
        group.wait_until_shared()
        assert len(group.alive) == PARTITIONS
        while len(group.alive) > 1:
            group.alive[0].leave()
        group.wait_until_shared()
        group.wait_until_read(records.stop())
    assert {1, 2, 4, 6} <= set(sizes)


@pytest.mark.parametrize(
    ("library", "assignor"),
    [
        pytest.param("confluent", "range"),
        pytest.param("kafka-python", "range", marks=pytest.mark.soak),
        pytest.param("aiokafka", "roundrobin", marks=pytest.mark.soak),
    ],
)
def test_static_groups_members_restart_within_and_after_their_session(server, library, assignor):
    session_ms = 3 * SESSION_MS
    with (
        watching_owners(server.port, "group") as sizes,
        Records(server.bootstrap_servers) as records,
        ForeignGroup(server.port, "group", TOPIC, PARTITIONS) as group,
    ):

        def start(instance_id: str) -> object:
            return group.start(library, assignor, instance_id=instance_id, session_ms=session_ms)

        stays, restarts = start("one"), start("two")
        group.wait_until_shared()
        group.wait_until(lambda: sizes[-1:] == [2], "was seen with both members by the watcher")
        share, sizes_before = restarts.assigned, len(sizes)
        restarts.kill()  # and is back before its session is over: nobody rebalances
        restarts = start("two")
        group.wait_until(lambda: restarts.assigned == share, "got its partitions back")
        assert len(sizes) == sizes_before
        restarts.kill()
        group.wait_until(lambda: stays.assigned == group.everything, "took over")
        start("two")
        group.wait_until_shared()
        group.wait_until_read(records.stop())


@pytest.mark.parametrize(
    ("one", "other", "assignor"),
    [pytest.param(*MIXED[0]), *(pytest.param(*row, marks=pytest.mark.soak) for row in MIXED[1:])],
)
def test_groups_of_two_libraries_share_the_work(server, one, other, assignor):
    with (
        watching_owners(server.port, "group"),
        Records(server.bootstrap_servers) as records,
        ForeignGroup(server.port, "group", TOPIC, PARTITIONS) as group,
    ):
        group.start(one, assignor)
        second = group.start(other, assignor)
        third = group.start(one, assignor)
        group.wait_until_shared()
        second.kill()
        group.wait_until_shared()
        group.start(other, assignor)
        group.wait_until_shared()
        third.leave()
        group.wait_until_shared()
        group.wait_until_read(records.stop())


@pytest.mark.parametrize(
    ("library", "pattern"),
    [
        pytest.param("confluent", "^events-.*"),
        pytest.param("kafka-python", "^events-.*", marks=pytest.mark.soak),
        pytest.param("aiokafka", "^events-.*", marks=pytest.mark.soak),
    ],
)
def test_groups_by_pattern_take_in_new_topics(server, library, pattern):
    create_topic(server.bootstrap_servers, "events-a", PARTITIONS)
    with (
        watching_owners(server.port, "group"),
        ForeignGroup(server.port, "group", "events-a", PARTITIONS) as group,
    ):
        for _ in range(2):
            group.start(library, "range", pattern=pattern)
        group.wait_until_shared()
        create_topic(server.bootstrap_servers, "events-b", PARTITIONS)
        group.everything |= {("events-b", index) for index in range(PARTITIONS)}
        group.wait_until_shared(spread=2)
        with Records(server.bootstrap_servers, ("events-a", "events-b")) as records:
            Event().wait(1)
        group.wait_until_read(records.sent)
