"""Our consumer in one group with other clients, on our broker and on Apache Kafka.

Members come, go and are killed while records are written: each partition has one owner in a
generation, and nothing is lost. A slice runs with the interop tests, all of it by
`make soak-groups`.
"""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import NamedTuple
from uuid import uuid4

import pytest

from tests.interop.group_processes import ForeignGroup, ForeignProcess, watching_owners
from tests.interop.test_foreign_groups_matrix import PARTITIONS, Records
from tests.interop.test_java_groups_on_our_broker import java_member
from tests.support.broker_load import create_topic
from tests.support.server_process import ServerProcess

OURS = "ours"
JAVA = "java"
# The assignors that each has in common with us.
SHARED = {
    "confluent": ("range", "roundrobin", "cooperative-sticky"),
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    JAVA: ("range", "roundrobin", "sticky", "cooperative-sticky"),
}
SLICE = {
    ("our broker", "confluent", "cooperative-sticky"),
    ("our broker", "kafka-python", "sticky"),
    ("Apache Kafka", JAVA, "cooperative-sticky"),
}

pytestmark = [pytest.mark.usefixtures("kafka_jars"), pytest.mark.timeout(400)]


class Place(NamedTuple):
    """A broker, and a topic of its own for this test."""

    port: int
    topic: str

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    topic = f"orders-{uuid4().hex[:8]}"
    if request.param == "Apache Kafka":
        apache = request.getfixturevalue("apache")
        create_topic(apache.bootstrap_servers, topic, PARTITIONS)
        yield Place(apache.port, topic)
    else:
        config = ("--config", "group.min.session.timeout.ms=500")
        with ServerProcess("--data-dir", tmp_path, *config) as server:
            create_topic(server.bootstrap_servers, topic, PARTITIONS)
            yield Place(server.port, topic)


class MixedGroup(ForeignGroup):
    """A group on a place; Java's members need a folder for their options."""

    def __init__(self, place: Place, folder: Path) -> None:
        super().__init__(place.port, f"group of {place.topic}", place.topic, PARTITIONS)
        self._folder = folder

    def join(self, library: str, assignor: str) -> ForeignProcess:
        """Start a member by any library."""
        if library == JAVA:
            return java_member(self, len(self.members), assignor, self._folder)
        return self.start(library, assignor)


def cell(where: str, library: str, assignor: str) -> object:
    marks = () if (where, library, assignor) in SLICE else pytest.mark.soak
    return pytest.param(where, library, assignor, marks=marks)


MATRIX = [
    cell(where, library, assignor)
    for where in ("our broker", "Apache Kafka")
    for library, assignors in SHARED.items()
    for assignor in assignors
]


@pytest.mark.parametrize(("place", "library", "assignor"), MATRIX, indirect=["place"])
def test_groups_of_ours_and_others_lose_nothing(place, library, assignor, tmp_path):
    with (
        MixedGroup(place, tmp_path) as group,
        watching_owners(place.port, group.group) as sizes,
        Records(place.bootstrap, (place.topic,)) as records,
    ):
        stays, theirs = group.join(OURS, assignor), group.join(library, assignor)
        ours = group.join(OURS, assignor)
        group.wait_until_shared()
        theirs.kill()
        group.wait_until_shared()
        group.join(library, assignor)
        group.wait_until_shared()
        ours.leave()
        group.wait_until_shared()
        group.wait_until_read(records.stop())
        assert stays.values
    assert {2, 3} <= set(sizes)


@pytest.mark.parametrize(
    ("place", "library"),
    [
        pytest.param("our broker", OURS),
        pytest.param("Apache Kafka", JAVA, marks=pytest.mark.soak),
    ],
    indirect=["place"],
)
def test_groups_go_from_eager_to_cooperative_member_by_member(place, library, tmp_path):
    """Two rounds of restarts, as KIP-429 says: first both assignors, then the new one alone."""
    both = "cooperative-sticky,range"
    with (
        MixedGroup(place, tmp_path) as group,
        watching_owners(place.port, group.group),
        Records(place.bootstrap, (place.topic,)) as records,
    ):
        for one in (OURS, library, OURS):
            group.join(one, "range")
        group.wait_until_shared()
        for assignors in (both, "cooperative-sticky"):
            for old, new in zip(list(group.alive), (OURS, library, OURS), strict=True):
                old.leave()
                group.join(new, assignors)
                group.wait_until_shared()
        Event().wait(0.5)  # some records more, for the last generation
        group.wait_until_read(records.stop())
